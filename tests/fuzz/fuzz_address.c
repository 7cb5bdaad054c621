/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of any content, and what answers to names: both come from other processes by whatever
 * way programs exchange them. An address that is taken fits its limits and is the same when it is
 * packed again; an answer is an address only if it repeats the question.
 */
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "addr.h"
#include "bwf.h"
#include "checksum.h"
#include "count.h"
#include "env.h"
#include "fuzz.h"
#include "name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fuzz_input *answers;
enum { HEAD = 16, QUESTION = 80 }; /* bytes that an answer repeats, and of a question */
static uint8_t question[QUESTION];

/* In place of the network: every question is answered at once, by what the script says. */
int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return 0;
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	if (n != sizeof(question))
		fuzz_bad("a question of another length");
	memcpy(question, bytes, n);
	return (ssize_t)n;
}

int poll(struct pollfd *p, nfds_t n, int timeout)
{
	return answers->at < answers->end;
}

ssize_t recv(int fd, void *to, size_t room, int flags)
{
	uint8_t how = fuzz_u8(answers), all[256] = {0};
	uint32_t n = how & 1 ? HEAD + sizeof(struct bw_addr) : fuzz_u8(answers);
	uint32_t given = n;
	const uint8_t *bytes = fuzz_bytes(answers, &given);

	memcpy(all, bytes, given);
	if (how & 2 && n >= HEAD)
		memcpy(all, question, HEAD);
	memcpy(to, all, n < room ? n : room);
	return (ssize_t)(n < room ? n : room);
}

int usleep(useconds_t us)
{
	return 0;
}

void bwf_log(enum bwf_log_level level, const char *format, ...)
{
}

void bw_count_event(struct bw_ep *ep, enum bw_count what)
{
}

void bw_ep_addr(struct bw_ep *ep, struct bw_addr *addr)
{
}

uint64_t bwf_now_ns(void)
{
	static uint64_t now;

	return now += 10 * BW_MS; /* so that every wait ends */
}

static void try_address(struct bw_addr addr, bool seal)
{
	struct bw_addr_fields f, again;
	struct bw_addr packed;

	if (seal) {
		memcpy(&f, addr.bytes, sizeof(f));
		f.magic = BW_ADDR_MAGIC;
		f.crc = bw_checksum(0, &f, offsetof(struct bw_addr_fields, crc));
		memcpy(addr.bytes, &f, sizeof(f));
	}
	if (bw_addr_unpack(&addr, &f))
		return;
	if (f.version != BW_ADDR_VERSION || !f.node || !f.inc || !f.engine ||
	    f.more_macs >= BW_ADDR_MACS || (f.more_macs && !(f.links & BW_LINK_PACKET)) ||
	    (f.links & BW_LINK_UDP6 && (f.more_macs || f.links & BW_LINK_UDP)) || f.links > 0x1F)
		fuzz_bad("an address beyond its limits");
	if (bwf_name_is(&addr))
		fuzz_bad("an address that is a name as well");
	again = f;
	bw_addr_pack(&again, &packed);
	if (memcmp(&packed, &addr, sizeof(addr)))
		fuzz_bad("an address that is another when it is packed again");
}

static void try_name(struct fuzz_input *in)
{
	struct bw_addr addr = {0}, before;
	uint8_t text[24] = {0};
	uint32_t n = fuzz_u8(in) % sizeof(text);
	const uint8_t *bytes = fuzz_bytes(in, &n);

	memcpy(text, bytes, n);
	if (bwf_name_make((const char *)text, "7", true, &addr) &&
	    bwf_name_make("127.0.0.1", "7", true, &addr))
		fuzz_bad("no name");
	before = addr;
	if (!bwf_name_is(&addr) || !bwf_name_has_port(&addr))
		fuzz_bad("a name that is none");
	answers = in;
	if (bwf_name_resolve(&addr) && memcmp(&before, &addr, sizeof(addr)))
		fuzz_bad("a name that was not found has changed");
	try_address(addr, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct bw_addr addr = {0};
	uint8_t how = fuzz_u8(&in);
	uint32_t n = sizeof(addr);
	const uint8_t *bytes;

	if (how & 2) {
		try_name(&in);
		return 0;
	}
	bytes = fuzz_bytes(&in, &n);
	memcpy(addr.bytes, bytes, n);
	try_address(addr, how & 1);
	return 0;
}
