/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program of 32 bits that makes every ioctl, for test_compat.c, which runs it with the descriptor
 * of a socket for which a long message waits. It stands alone, as libraries of 32 bits need not be
 * installed: system calls go by the gate of such programs, and the exit status names the check that
 * failed.
 */
#include <asm/unistd_32.h>
#include <linux/errno.h>
#include <linux/types.h>

#include "beowire_server.h"
#include "beowire_socket.h"

#define BYTES	   (1u << 20)
#define RDM	   4 /* SOCK_RDM */
#define NUMBER	   7 /* of a protocol */
#define READ_WRITE 2
#define SHARED	   1

_Static_assert(sizeof(void *) == 4, "this is no program of 32 bits");

struct iovec32 {
	void *base;
	__u32 len;
};

struct msghdr32 {
	void *name;
	__u32 namelen;
	struct iovec32 *iov;
	__u32 iovlen;
	void *control;
	__u32 controllen;
	__u32 flags;
};

struct control {
	__u32 len, level, type;
	struct beowire_info info;
} __attribute__((packed, aligned(4)));

static unsigned char bytes[BYTES];

static long call6(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	/* The sixth argument goes in the register that frames are addressed by. */
	__asm__ volatile("pushl %%ebp\n\t"
			 "movl %[f], %%ebp\n\t"
			 "int $0x80\n\t"
			 "popl %%ebp"
			 : "=a"(result)
			 : "0"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), [f] "m"(f)
			 : "memory");
	return result;
}

static long call(long number, long a, long b, long c)
{
	return call6(number, a, b, c, 0, 0, 0);
}

static void leave(int status)
{
	for (;;)
		call(__NR_exit, status, 0, 0);
}

static void must(int check, int good)
{
	if (!good)
		leave(check);
}

static long ioctl(int fd, unsigned long request, void *argument)
{
	return call(__NR_ioctl, fd, (long)request, (long)argument);
}

static void receive(int check, int fd, struct beowire_info *info)
{
	struct control control;
	struct iovec32 part = {bytes, 1};
	struct msghdr32 m = {.iov = &part, .iovlen = 1, .control = &control};

	m.controllen = sizeof(control);
	must(check, call(__NR_recvmsg, fd, (long)&m, 0) >= 0);
	must(check, m.controllen >= sizeof(control) && control.type == BEOWIRE_INFO);
	*info = control.info;
}

/* The message that waits at fd, whose bytes are 5. */
static void fetch(int fd)
{
	struct beowire_pull pull = {
		.len = BYTES, .buf = (unsigned long)bytes, .cookie = 1ull << 40};
	struct beowire_watch watch;
	struct beowire_info info;
	int on = 1;

	must(10, !call6(__NR_setsockopt, fd, SOL_BEOWIRE, BEOWIRE_INFO_WANTED, (long)&on, 4, 0));
	receive(11, fd, &info);
	must(12, info.event == BEOWIRE_ENVELOPE && info.len == BYTES);
	pull.key = info.key;
	pull.peer = info.peer;
	pull.flags = 0x80;
	must(13, ioctl(fd, BEOWIRE_IOC_PULL, &pull) == -EINVAL);
	pull.flags = 0;
	must(14, !ioctl(fd, BEOWIRE_IOC_PULL, &pull));
	receive(15, fd, &info);
	must(16, info.event == BEOWIRE_PULLED && !info.status && info.len == BYTES);
	must(17, info.cookie == pull.cookie);
	for (unsigned i = 0; i < BYTES; i++)
		must(18, bytes[i] == 5);
	watch = (struct beowire_watch){.peer = pull.peer, .on = 1};
	must(19, !ioctl(fd, BEOWIRE_IOC_WATCH, &watch));
	watch.on = 2;
	must(20, ioctl(fd, BEOWIRE_IOC_WATCH, &watch) == -EINVAL);
	must(21, ioctl(fd, BEOWIRE_IOC_NEED, &watch) == -EINVAL);
	watch.on = 0;
	must(22, !ioctl(fd, BEOWIRE_IOC_NEED, &watch));
}

static void small_ones(int fd)
{
	struct beowire_region region = {.id = 1, .buf = (unsigned long)bytes, .len = 1};
	__aligned_u64 cookie = 3;

	must(30, ioctl(fd, BEOWIRE_IOC_CANCEL, &cookie) == -ENOENT);
	must(31, ioctl(fd, BEOWIRE_IOC_REGION, &region) == -ENOENT);
	must(32, ioctl(fd, BEOWIRE_IOC_SERVING, &region) == 0);
	must(33, ioctl(fd, SIOCPROTOPRIVATE + 15, &region) < 0);
}

/* Its own socket's address, and its interface. */
static void addresses(void)
{
	struct sockaddr_beowire own = {.sbw_family = AF_BEOWIRE};
	struct beowire_iface iface = {.name = "eth0"};
	__u32 len = sizeof(own);
	int fd = (int)call(__NR_socket, AF_BEOWIRE, RDM, 0);

	must(40, fd >= 0);
	must(41, !ioctl(fd, BEOWIRE_IOC_DETACH, &iface));
	must(42, iface.mtu == 9000 && iface.ifindex);
	must(43, !ioctl(fd, BEOWIRE_IOC_ATTACH, &iface));
	must(44, ioctl(fd, BEOWIRE_IOC_ATTACH, &iface) == -EEXIST);
	must(45, !call(__NR_bind, fd, (long)&own, sizeof(own)));
	must(46, !call(__NR_getsockname, fd, (long)&own, (long)&len));
	must(47, len == sizeof(own) && own.sbw_port && own.sbw_ifindex == iface.ifindex);
}

static void server(void)
{
	struct beowire_server_claim claim = {.number = NUMBER, .name = "of 32 bits"};
	struct beowire_server_iface links[BEOWIRE_SERVER_IFACES];
	struct beowire_server_turn turn = {.timeout_ns = 1000};
	int fd = (int)call(__NR_open, (long)"/dev/beowire", READ_WRITE, 0);
	unsigned long area;

	must(50, fd >= 0);
	must(51, !ioctl(fd, BEOWIRE_SERVER_CLAIM, &claim));
	must(52, claim.area > 4 * 65536 && claim.at[3].data > claim.at[2].data && claim.node);
	must(53, !ioctl(fd, BEOWIRE_SERVER_LINKS, links));
	must(54, links[0].mtu == 9000 && !links[1].ifindex);
	area = (unsigned long)call6(__NR_mmap2, 0, (long)claim.area, 3, SHARED, fd, 0);
	must(55, area < 0xfffff000ul);
	must(56, !ioctl(fd, BEOWIRE_SERVER_TURN, &turn));
	must(57, ioctl(fd, BEOWIRE_SERVER_CLAIM, &claim) == -EBUSY);
}

/* Called by _start with the address of argc, which argv follows. */
__attribute__((used, noreturn)) void program(const long *start)
{
	const char *digits = (const char *)start[2];
	int fd = 0;

	for (; *digits; digits++)
		fd = fd * 10 + (*digits - '0');
	fetch(fd);
	small_ones(fd);
	addresses();
	server();
	for (;;)
		leave(0);
}

__asm__(".globl _start\n"
	"_start:\n\t"
	"movl %esp, %eax\n\t"
	"andl $-16, %esp\n\t"
	"subl $12, %esp\n\t"
	"pushl %eax\n\t"
	"call program\n");
