/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * First contact on the local link: letters of any content from another process, with any
 * descriptors or none, to an endpoint that listens, and answers of any content to one that calls.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "link/local/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING (16u << 10)

static struct bw_local *link_; /* of the victim */
static struct bw_local_peer *peer;
static uint16_t number, other;

static int on_new(void *arg, struct bw_local_peer *p, const struct bw_local_id *id, void **ctx)
{
	if (strnlen(id->name, sizeof(id->name)) == sizeof(id->name))
		fuzz_bad("a name without an end");
	peer = p;
	return id->node & 0x100 ? -EACCES : 0;
}

static void on_message(void *arg, void *ctx, const struct bw_local_message *m)
{
}
static void on_sent(void *arg, void *ctx, void *op, int status)
{
}
static void on_pulled(void *arg, void *ctx, void *op, int status, uint64_t len)
{
}

static void on_down(void *arg, void *ctx, int status)
{
	peer = NULL;
}

static void *on_region(void *arg, void *ctx, uint64_t key, uint64_t off, uint64_t len)
{
	return NULL;
}

static const struct bw_local_handlers handlers = {
	.peer_new = on_new,
	.message = on_message,
	.sent = on_sent,
	.pulled = on_pulled,
	.peer_down = on_down,
	.region = on_region,
};

static int claim(uint16_t *free_number)
{
	static uint16_t last;
	int fd;

	if (!last)
		last = (uint16_t)(getpid() * 16);
	do {
		last += !(uint16_t)(last + 1) ? 2 : 1;
		fd = bw_local_claim(last);
	} while (fd < 0);
	*free_number = last;
	return fd;
}

static void victim_open(void)
{
	struct bw_local_attr attr = {
		.self = {.node = 1, .cluster = FUZZ_CLUSTER, .incarnation = 5, .name = "victim"},
		.ring_bytes = RING,
		.handlers = &handlers,
	};

	attr.claim = claim(&number);
	attr.self.engine = number;
	peer = NULL;
	if (bw_local_open(&link_, &attr) < 0)
		fuzz_bad("a link cannot be opened");
}

static void poll_victim(void)
{
	static uint64_t now;

	for (int i = 0; i < 2; i++)
		bw_local_poll(link_, now += BW_S, true);
}

/* A descriptor as a letter may bring it: right, of a wrong length, without seals, or no memory. */
static int descriptor(uint8_t how, size_t right)
{
	int fd;

	if ((how & 7) == 7)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ftruncate(fd, (off_t)((how & 7) == 6 ? right / 2 : right)))
		fuzz_bad("no memory");
	if ((how & 7) != 5)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

/* A letter that would be welcome, changed as the script says. */
static void letter(struct fuzz_input *in, struct bw_local_hello *h, bool answer)
{
	uint8_t changes = fuzz_u8(in) % 4;

	*h = (struct bw_local_hello){.magic = BW_LOCAL_MAGIC,
				     .version = BW_LOCAL_VERSION,
				     .answer = answer,
				     .node = 1,
				     .cluster = FUZZ_CLUSTER,
				     .incarnation = 6,
				     .engine = other,
				     .dst_engine = number,
				     .dst_incarnation = 5,
				     .ring_bytes = RING,
				     .key = {fuzz_u8(in), 9}};
	memset(h->name, 'x', sizeof(h->name));
	while (changes--) {
		uint32_t at = fuzz_u8(in) % sizeof(*h), n = 1 + fuzz_u8(in) % 8;
		const uint8_t *bytes = fuzz_bytes(in, &n);

		if (n > sizeof(*h) - at)
			n = (uint32_t)sizeof(*h) - at;
		memcpy((uint8_t *)h + at, bytes, n);
	}
}

static void letter_send(struct fuzz_input *in, int sock, bool answer)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control = {0};
	struct bw_local_hello h;
	uint8_t how = fuzz_u8(in), more = fuzz_u8(in);
	struct iovec part = {.iov_base = &h, .iov_len = how & 8 ? more : sizeof(h)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t segment = page + 2 * (size_t)BW_LOCAL_SLOTS + 2 * RING;
	int fd[3], fds = how & 0x40 ? more % 4 : answer ? 1 : 2;

	letter(in, &h, answer);
	if (part.iov_len > sizeof(h))
		part.iov_len = sizeof(h);
	for (int i = 0; i < fds; i++)
		fd[i] = descriptor(how >> 4 & 1 ? more >> i : 0, i || answer ? page : segment);
	if (fds) {
		struct cmsghdr *c;

		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE((size_t)fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)fds * sizeof(int));
		memcpy(CMSG_DATA(c), fd, (size_t)fds * sizeof(int));
	}
	sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (fds)
		close(fd[--fds]);
}

/* Somebody calls the victim. */
static int call(void)
{
	struct sockaddr_un sun;
	socklen_t len = bw_local_name(number, &sun);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (connect(fd, (struct sockaddr *)&sun, len) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void called(struct fuzz_input *in)
{
	int fd[4], n = 0;

	while (in->at < in->end && n < 4) {
		fd[n] = call();
		if (fd[n] < 0)
			break;
		letter_send(in, fd[n], fuzz_u8(in) == 0xFF);
		if (fuzz_u8(in) & 1) /* a second letter where doorbells belong */
			letter_send(in, fd[n], false);
		n++;
		poll_victim();
	}
	while (n)
		close(fd[--n]);
	poll_victim();
}

static void calling(struct fuzz_input *in, int listener)
{
	int fd;

	listen(listener, 4);
	if (bw_local_connect(link_, other, 6, NULL, &peer) < 0)
		fuzz_bad("no contact");
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (in->at < in->end) {
		letter_send(in, fd, fuzz_u8(in) != 0xFF);
		poll_victim();
	}
	close(fd);
	poll_victim();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	int fds, listener;

	listener = claim(&other);
	fds = dup(listener);
	close(fds);
	victim_open();
	if (fuzz_u8(&in) & 1)
		called(&in);
	else
		calling(&in, listener);
	bw_local_close(link_);
	close(listener);
	/* descriptors that came with letters are closed: the lowest free one is where it was */
	listener = claim(&other);
	if (dup(listener) != fds)
		fuzz_bad("descriptors were left open");
	close(fds);
	close(listener);
	return 0;
}
