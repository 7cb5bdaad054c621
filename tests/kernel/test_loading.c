/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The modules are loaded and unloaded: never while a socket is open, and cleanly while frames come
 * and what was sent is still under way. The last program of a row: it leaves fresh modules.
 *
 *	test_loading [ROUNDS [FOLDER]]		FOLDER: of the modules
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"
#include "wire.h"

#define UNLOAD_TRIES	900 /* 90 s: peers are given up after 60 s */
#define UNLOAD_PAUSE_US 100000

static unsigned long rounds = 4; /* more by the argument */
static char folder[512];	 /* of the modules */
static char taken[512];		 /* the file of the one that has the module's device: drivers/ */

/* Both, if both are there; the last socket is forgotten a moment after its close, and a port whose
 * last words were not acknowledged when it gives its peer up. */
static bool unload(void)
{
	bool there = true;

	for (int tries = 0; tries < UNLOAD_TRIES && there; tries++) {
		if (tries)
			usleep(UNLOAD_PAUSE_US);
		if (system("rmmod beowire_datagram beowire 2>/dev/null") < 0)
			return false;
		there = access("/sys/module/beowire", F_OK) == 0;
	}
	return !there;
}

static int loads_with(const char *parameter)
{
	char command[4096];

	snprintf(command, sizeof(command), "insmod %s/beowire.ko %s 2>/dev/null", folder,
		 parameter);
	return system(command);
}

static void load(void)
{
	kt_shell("insmod %s/beowire.ko && insmod %s/beowire_datagram.ko", folder, folder);
	assert_int_equal(kt_attach(NULL), 0);
}

static void test_parameters_that_are_none(void **state)
{
	assert_true(unload());
	assert_int_not_equal(loads_with("pinned_pages=1"), 0);
	assert_int_not_equal(loads_with("overflow_max=much"), 0);
	load();
}

/* Both interfaces are attached, and what comes from one socket is answered by the other. */
static void answer_by_family(int family)
{
	const char *const nodes[] = {"a", "b"};
	struct sockaddr_beowire at[2] = {{.sbw_family = (sa_family_t)family}}, from;
	socklen_t len = sizeof(from);
	int fd[2], other;
	char byte;

	for (int i = 0; i < 2; i++) {
		struct beowire_iface iface = {.name = "eth0"};

		kt_enter(nodes[i]);
		fd[i] = socket(family, SOCK_RDM, 0);
		assert_true(fd[i] >= 0);
		assert_int_equal(ioctl(fd[i], BEOWIRE_IOC_ATTACH, &iface), 0);
		at[i].sbw_family = (sa_family_t)family;
		assert_int_equal(bind(fd[i], (struct sockaddr *)&at[i], sizeof(at[i])), 0);
		at[i] = kt_at(fd[i]);
		assert_int_equal(at[i].sbw_family, family);
	}
	other = socket(AF_BEOWIRE, SOCK_RDM, 0);
	assert_int_equal(other, -1);
	assert_int_equal(kt_send_to(fd[0], "x", 1, &at[1]), 1);
	assert_int_equal(recvfrom(fd[1], &byte, 1, 0, (struct sockaddr *)&from, &len), 1);
	assert_int_equal(from.sbw_family, family);
	from.sbw_ifindex = 0;
	assert_int_equal(kt_send_to(fd[1], "y", 1, &from), 1);
	assert_int_equal(recv(fd[0], &byte, 1, 0), 1);
	assert_int_equal(byte, 'y');
	close(fd[0]);
	close(fd[1]);
}

static void test_another_number_of_the_family(void **state)
{
	assert_true(unload());
	assert_int_equal(loads_with("family=18"), 0);
	answer_by_family(18);
	assert_true(unload());
	load();
}

static void test_not_with_sockets_open(void **state)
{
	const int types[] = {SOCK_RDM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};

	for (int i = 0; i < 4; i++) {
		int fd = kt_open("a", types[i]);

		assert_int_not_equal(system("rmmod beowire 2>/dev/null"), 0);
		if (types[i] == SOCK_DGRAM)
			assert_int_not_equal(system("rmmod beowire_datagram 2>/dev/null"), 0);
		close(fd);
	}
}

/* ---- a start that fails ---- */

static long open_the_device(void *arg)
{
	return open("/dev/beowire", O_RDWR) < 0 ? errno : 0;
}

static long load_in_vain(void *arg)
{
	return loads_with("");
}

static bool somebody_opens(void)
{
	FILE *f = fopen("/sys/module/kt_taken/parameters/opening", "r");
	int letter;

	assert_non_null(f);
	letter = fgetc(f);
	fclose(f);
	return letter == 'Y';
}

/* The module's device has a name that is taken, so that its start fails; while somebody opens the
 * other device it stands still before that, when its sockets' family is registered. Nobody gets a
 * socket: the module would go away under it. */
static void test_no_socket_of_a_start_that_fails(void **state)
{
	struct kt_thread opener, loader;

	assert_true(unload());
	kt_shell("insmod %s", taken);
	kt_start(&opener, open_the_device, NULL);
	kt_until(somebody_opens());
	kt_start(&loader, load_in_vain, NULL);
	kt_until(system("grep -qs misc_register /proc/[0-9]*/stack") == 0);
	for (const char *node = "ab"; *node; node++) {
		kt_enter(*node == 'a' ? "a" : "b");
		kt_refused(socket(AF_BEOWIRE, SOCK_RDM, 0), EAFNOSUPPORT);
		kt_refused(socket(AF_BEOWIRE, SOCK_STREAM, 0), EAFNOSUPPORT);
	}
	kt_shell("echo 1 >/sys/module/kt_taken/parameters/go_on");
	assert_int_equal(kt_join(&opener), EBUSY);
	assert_int_not_equal(kt_join(&loader), 0);
	kt_shell("rmmod kt_taken");
	load();
}

/* ---- under traffic ---- */

/* Frames for a's module, whether it is there or not. */
static pid_t begin_traffic(struct kt_pair *p)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	const struct bw_hdr h = {.magic = BW_MAGIC,
				 .version = BW_VERSION,
				 .type = BW_FRAME_DATA,
				 .cluster = BW_CLUSTER_DEFAULT,
				 .dst_engine = p->at_a.sbw_port};
	const uint16_t type = htons(BW_ETHERTYPE);
	uint8_t frame[100] = {0};
	pid_t pid = fork();
	int raw;

	if (pid)
		return pid;
	kt_close(p);
	kt_enter("b");
	raw = socket(AF_PACKET, SOCK_RAW, 0);
	addr.sll_ifindex = (int)if_nametoindex("eth0");
	memcpy(frame, p->at_a.sbw_mac, 6);
	memcpy(frame + 12, &type, 2);
	memcpy(frame + 14, &h, sizeof(h));
	while (sendto(raw, frame, sizeof(frame), 0, (struct sockaddr *)&addr, sizeof(addr)) > 0)
		usleep(200);
	_exit(1);
}

static void test_again_and_again_under_traffic(void **state)
{
	static char bytes[100000];
	struct kt_pair first = kt_pair(SOCK_RDM);
	pid_t traffic = begin_traffic(&first);

	kt_close(&first);
	for (unsigned long i = 0; i < rounds; i++) {
		struct kt_pair p = kt_couple(SOCK_RDM), d = kt_couple(SOCK_DGRAM);

		for (int k = 0; k < 10; k++) {
			send(p.a, bytes, 1000, MSG_DONTWAIT);
			send(d.b, bytes, 1000, MSG_DONTWAIT);
		}
		send(p.a, bytes, sizeof(bytes), MSG_DONTWAIT);
		assert_int_equal(recv(p.b, bytes, 1000, 0), 1000);
		kt_close(&p);
		kt_close(&d);
		assert_true(unload());
		load();
	}
	assert_int_equal(waitpid(traffic, NULL, WNOHANG), 0); /* it went on all the time */
	kill(traffic, SIGKILL);
	waitpid(traffic, NULL, 0);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		kt_test(test_parameters_that_are_none),
		kt_test(test_another_number_of_the_family),
		kt_test(test_not_with_sockets_open),
		kt_test(test_no_socket_of_a_start_that_fails),
		kt_test(test_again_and_again_under_traffic),
	};
	struct utsname self;
	char program[256];

	if (count > 1)
		rounds = strtoul(words[1], NULL, 10);
	if (uname(&self) || !realpath(words[0], program))
		return 1;
	kt_driver(taken, sizeof(taken), program, "kt_taken");
	*strrchr(program, '/') = 0;
	snprintf(folder, sizeof(folder), "%s/../../kernel/%s", program, self.release);
	if (count > 2)
		snprintf(folder, sizeof(folder), "%s", words[2]);
	return cmocka_run_group_tests(tests, kt_attach, NULL);
}
