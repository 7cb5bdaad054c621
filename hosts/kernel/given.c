/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What programs give along with a call: addresses, and control messages of a send. tests/fuzz runs
 * this outside a kernel. */
#include <linux/etherdevice.h>

#include "sock.h"

/* How a message travels; see beowire_socket.h. */
#define BWK_GIVEN_WAYS (BEOWIRE_SEND_EAGER | BEOWIRE_SEND_SHORT | BEOWIRE_SEND_LONG)

int bwk_given_addr(const struct sock *sk, const void *addr, int len, struct sockaddr_beowire *out)
{
	int error = 0;

	if (len < (int)sizeof(*out))
		return bwk_sock_bad(sk, BWK_BAD_ADDRESS, -EINVAL);
	memcpy(out, addr, sizeof(*out));
	if (out->sbw_family != bwk_family)
		error = -EAFNOSUPPORT;
	else if (out->sbw_zero[0] || out->sbw_zero[1])
		error = -EINVAL;
	return unlikely(error) ? bwk_sock_bad(sk, BWK_BAD_ADDRESS, error) : 0;
}

int bwk_given_target(const struct sock *sk, const void *addr, int len, struct sockaddr_beowire *out)
{
	int error = bwk_given_addr(sk, addr, len, out);

	if (error)
		return error;
	if (likely(out->sbw_port && is_valid_ether_addr(out->sbw_mac)))
		return 0;
	return bwk_sock_bad(sk, BWK_BAD_ADDRESS, -EADDRNOTAVAIL);
}

int bwk_given_info(const struct sock *sk, struct msghdr *m, struct beowire_info *info)
{
	struct cmsghdr *c;

	for_each_cmsghdr(c, m) {
		if (!CMSG_OK(m, c))
			return -EINVAL;
		if (c->cmsg_level != SOL_BEOWIRE)
			continue;
		if (c->cmsg_type != BEOWIRE_INFO || sk->sk_type != SOCK_RDM ||
		    c->cmsg_len != CMSG_LEN(sizeof(*info)))
			return -EINVAL;
		memcpy(info, CMSG_DATA(c), sizeof(*info));
		if ((info->code & BW_CODE_ENVELOPE) ||
		    (info->flags & ~(BEOWIRE_SEND_ASYNC | BEOWIRE_SEND_ACKED | BWK_GIVEN_WAYS)) ||
		    hweight16(info->flags & BWK_GIVEN_WAYS) > 1)
			return -EINVAL;
	}
	return 0;
}
