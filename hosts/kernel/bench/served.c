/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams of the module whose protocol two servers speak, one in each namespace: processes of
 * this program that run the loop of beowire-server.
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../beowire_server.h"
#include "../server/serve.h"
#include "bench.h"

#define NUMBER 2 /* of the protocol */

static bool has_servers(void)
{
	return access("/dev/beowire", R_OK | W_OK) == 0;
}

/* The server's process, from when it may be asked for sockets until it is killed. */
static _Noreturn void serve(int told)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	errno = -serve_open(NUMBER, &bw_datagram, false);
	if (errno || write(told, "", 1) != 1)
		bench_fail("server: cannot serve");
	errno = -serve_loop();
	bench_fail("server");
}

static pid_t start_server(void)
{
	int told[2];
	char byte;
	pid_t pid;

	if (pipe(told))
		bench_fail("cannot make a pipe");
	pid = fork();
	if (pid < 0)
		bench_fail("cannot start a process");
	if (!pid)
		serve(told[1]);
	close(told[1]);
	if (read(told[0], &byte, 1) != 1)
		bench_fail("server: it did not begin");
	close(told[0]);
	return pid;
}

static void open_served(struct bench_end *end)
{
	bench_beowire_attach(end);
	end->helper = start_server();
	bench_beowire_bind(end, SOCK_DGRAM, NUMBER);
}

const struct bench_transport bench_server = {
	.name = "server",
	.here = has_servers,
	.open = open_served,
	.join = bench_beowire_connect,
	.send = bench_send_all,
	.receive = bench_receive_whole,
};
