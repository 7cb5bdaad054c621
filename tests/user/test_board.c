/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The board of an endpoint: who may see it, what it says, and that nothing of it stays: not after a
 * close, an exit, an exec, or the death of its process.
 */
#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "beowire_socket.h"
#include "link/kernel/impl.h"

#define BYTES	(64 << 10) /* of a message */
#define PERIODS 3	   /* of publication that are waited for */
#define OVERRUN 100	   /* datagrams that are too many */

static struct bw_ep *one, *other;
static struct told of_one, of_other;
static char path[PATH_MAX];
static uint8_t data[4 * BYTES];

/* What the kernel module would tell of a socket. */
static const struct beowire_counters of_module = {
	.tx_frames = 1,
	.rx_frames = 2,
	.tx_bytes = 3,
	.rx_bytes = 4,
	.tx_payload = 5,
	.rx_payload = 6,
	.retransmits = 1000,
	.drop[BW_DROP_DUPLICATE] = 2000,
};

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level != SOL_BEOWIRE)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
	assert_int_equal(name, BEOWIRE_COUNTERS);
	assert_int_equal(*len, sizeof(of_module));
	memcpy(value, &of_module, sizeof(of_module));
	return 0;
}

/* A place of this test's own. */
static char root[] = "/dev/shm/beowire-test-board-XXXXXX";

static int setup(void **state)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	assert_non_null(mkdtemp(root));
	setenv("BEOWIRE_STATUS", root, 1);
	one = endpoint_open("udp", &of_one);
	other = endpoint_open("udp", &of_other);
	strcpy(path, one->board.path);
	return 0;
}

static int teardown(void **state)
{
	if (one)
		bw_ep_close(one, 0);
	if (other)
		bw_ep_close(other, 0);
	one = other = NULL;
	return rmdir(root);
}

/* The file as a stranger to the process sees it, whole. */
static struct bw_board *seen(const char *file)
{
	static struct bw_board copy;
	int fd = open(file, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &copy, sizeof(copy)), sizeof(copy));
	/* Not close(): that would give up the lock, which is this process's. */
	return &copy;
}

static struct bw_board_sheet *sheet(void)
{
	struct bw_board *b = seen(path);

	return &b->sheet[b->current];
}

static void await_sheet(void)
{
	uint64_t at = sheet()->at, until = bw_clock_now() + SOON_MS * BW_MS;

	while (sheet()->at == at) {
		assert_true(bw_clock_now() < until);
		bw_progress(one);
		bw_progress(other);
		usleep(1000);
	}
}

/* Sheets, until one says that the peer has acknowledged all that it was sent. How many that takes
 * is not known: what is lost is sent again, and acknowledgements may come late. */
static void await_acknowledged(void)
{
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;
	struct bw_board_peer p;

	do {
		assert_true(bw_clock_now() < until);
		await_sheet();
		p = sheet()->peer[0];
	} while (!p.srtt_ns || p.inflight || p.queued);
}

static bool held(const char *file)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int status;
	pid_t child = fork(); /* a process is never in its own way */

	if (!child) {
		int fd = open(file, O_RDONLY);

		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) ? 2 : lock.l_type != F_UNLCK);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status);
}

static void board__is_private_and_held(void **state)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, sizeof(struct bw_board));
	assert_true(st.st_blocks * 512 >= st.st_size);
	assert_int_equal(stat(one->board.dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_true(held(path));
}

static void board__says_who_the_endpoint_is(void **state)
{
	const struct bw_board *b = seen(path);

	assert_string_equal(b->magic, BW_BOARD_MAGIC);
	assert_int_equal(b->pid, getpid());
	assert_int_equal(b->uid, geteuid());
	assert_int_equal(b->node, one->self.node);
	assert_int_equal(b->engine, one->self.engine);
	assert_string_equal(b->program, program_invocation_short_name);
	assert_true(b->started);
	assert_string_equal(b->drop_name[BW_DROP_DUPLICATE], "duplicate");
}

static void board__goes_with_the_endpoint(void **state)
{
	char dir[PATH_MAX];

	strcpy(dir, one->board.dir);
	bw_ep_close(one, 0);
	one = NULL;
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(dir, F_OK), 0);
	bw_ep_close(other, 0);
	other = NULL;
	assert_int_equal(access(dir, F_OK), -1);
}

static void board__can_be_switched_off(void **state)
{
	struct told told;
	struct bw_ep *ep;

	setenv("BEOWIRE_STATUS", "off", 1);
	ep = endpoint_open("udp", &told);
	assert_null(ep->board.map);
	bw_ep_close(ep, 0);
}

/* What was sent, and what waits. */
static void board__tells_of_peers(void **state)
{
	bw_peer_no peer = endpoint_find(one, other);
	const struct bw_board_peer *p;
	struct bw_peer_view v;
	uint64_t since;

	for (int i = 0; i < 5; i++)
		assert_int_equal(bw_send(one, peer, 1, 0, 0, data, 100, 0, NULL), 1);
	endpoint_await(one, other, &of_other.messages, 5);
	/* Two long ones: of each an envelope travels, which nobody fetches. */
	for (int i = 0; i < 2; i++)
		bw_send(one, peer, 1, 0, 0, data, sizeof(data), BW_SEND_ACKED, &of_one);
	endpoint_await(one, other, &of_other.messages, 7);
	await_acknowledged();
	bw_publish(one);
	assert_int_equal(bw_reliable_peer_view(one->engine, one->remotes.at[peer]->handle, &v), 0);
	p = &sheet()->peer[0];
	assert_int_equal(sheet()->peers_told, 1);
	assert_int_equal(p->node, other->self.node);
	assert_int_equal(p->engine, other->self.engine);
	assert_int_equal(p->incarnation, other->self.inc);
	assert_int_equal(p->way, BW_BOARD_ENGINE);
	assert_int_equal(p->link, BW_LINK_NO_UDP);
	assert_true(p->flags & BW_BOARD_UP);
	assert_int_equal(p->tx_messages, 7);
	/* Messages share packets, and may be sent again. */
	assert_true(p->tx_packets);
	assert_int_equal(p->tx_packets, v.tx_packets);
	assert_int_equal(p->retransmits, v.retransmits);
	assert_true(p->srtt_ns);
	assert_int_equal(p->srtt_ns, v.srtt_ns);
	assert_int_equal(p->exposed, 2);
	assert_int_equal(p->exposed_bytes, 2 * sizeof(data));
	since = p->exposed_since;
	assert_true(since);
	await_sheet();
	assert_int_equal(sheet()->peer[0].exposed_since, since);
}

/* The module's counters are this endpoint's. */
static void board__tells_of_the_kernel_link(void **state)
{
	struct bw_kernel module = {.fd = -1};
	uint64_t before = sheet()->drops[BW_DROP_DUPLICATE];
	const struct bw_board_sheet *s;

	one->kernel = &module;
	bw_publish(one);
	one->kernel = NULL;
	s = sheet();
	assert_int_equal(s->link[3].tx_frames, of_module.tx_frames);
	assert_int_equal(s->link[3].rx_frames, of_module.rx_frames);
	assert_int_equal(s->link[3].tx_bytes, of_module.tx_bytes);
	assert_int_equal(s->link[3].rx_bytes, of_module.rx_bytes);
	assert_int_equal(s->link[3].tx_payload, of_module.tx_payload);
	assert_int_equal(s->link[3].rx_payload, of_module.rx_payload);
	assert_true(s->retransmits >= 1000);
	assert_int_equal(s->drops[BW_DROP_DUPLICATE] - before, 2000);
}

/* The kernel counts them; nobody else asks it. */
static void board__tells_of_overruns(void **state)
{
	int fd = one->udp.socket[0].fd, least = 1, from;
	struct sockaddr_storage to;
	socklen_t n = sizeof(to);

	assert_int_equal(sheet()->overruns, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &n), 0);
	from = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(from >= 0);
	for (int i = 0; i < OVERRUN; i++)
		assert_int_equal(sendto(from, data, 1000, 0, (struct sockaddr *)&to, n), 1000);
	syscall(SYS_close, from);
	bw_publish(one);
	assert_true(sheet()->overruns > 0 && sheet()->overruns <= OVERRUN);
	assert_int_equal(sheet()->link[1].rx_overruns, sheet()->overruns);
}

/* An endpoint that comes to rest tells so, although nobody makes rounds on its account. */
static void board__is_due_once_after_the_last_traffic(void **state)
{
	assert_true(bw_publish_due(one) == BW_NEVER);
	one->board.at = bw_clock_now() + BW_S * SOON_MS; /* not yet */
	bw_progress(one);
	assert_int_equal(bw_publish_due(one), one->board.at);
	assert_true(bw_wait_limit(one, one->now) <= one->board.at - one->now);
	one->board.at = 0;
	/* The next one comes the later the longer this one took, of which a wait may stop short. */
	for (uint64_t until = bw_clock_now() + SOON_MS * BW_MS;
	     bw_publish_due(one) != BW_NEVER && bw_clock_now() < until;)
		bw_wait(one, BW_S);
	assert_true(bw_publish_due(one) == BW_NEVER);
	assert_int_equal(sheet()->rounds, one->rounds);
}

static void sheets__take_turns(void **state)
{
	uint32_t current = seen(path)->current;

	for (int i = 0; i < PERIODS; i++) {
		const struct bw_board *b;

		await_sheet();
		b = seen(path);
		assert_int_equal(b->current, !current);
		current = b->current;
		assert_int_equal(b->sheet[0].turn % 2, 0);
		assert_int_equal(b->sheet[1].turn % 2, 0);
	}
}

static void child_of_fork__leaves_the_board(void **state)
{
	int status;
	pid_t child = fork();

	if (!child) {
		bool gone = !one->board.map && one->board.fd < 0;

		bw_ep_close(one, 0);
		_exit(gone);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(access(path, F_OK), 0);
	assert_true(held(path));
}

/* A process of its own opens an endpoint, tells of its board, and waits for its end. */
static pid_t keeper(char *board, bool exec)
{
	int both[2];
	pid_t child;

	assert_int_equal(pipe(both), 0);
	child = fork();
	if (!child) {
		struct told told;
		struct bw_ep *ep;

		/* A test that fails before it ends this process leaves nobody behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ep = endpoint_open("udp", &told);
		if (write(both[1], ep->board.path, sizeof(ep->board.path)) < 0)
			_exit(1);
		if (exec)
			execlp("sleep", "sleep", "1000", NULL);
		pause();
	}
	close(both[1]);
	assert_true(read(both[0], board, sizeof(one->board.path)) > 0);
	close(both[0]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void opens_and_closes(void)
{
	struct told told;

	bw_ep_close(endpoint_open("udp", &told), 0);
}

static void next_one__removes_what_a_killed_process_left(void **state)
{
	char board[PATH_MAX];
	pid_t child = keeper(board, false);

	opens_and_closes();
	assert_int_equal(access(board, F_OK), 0);
	end(child);
	assert_int_equal(access(board, F_OK), 0);
	opens_and_closes();
	assert_int_equal(access(board, F_OK), -1);
	assert_int_equal(access(path, F_OK), 0);
}

static void next_one__removes_what_was_left_by_exec(void **state)
{
	char board[PATH_MAX];
	pid_t child = keeper(board, true);
	uint64_t until = bw_clock_now() + SOON_MS * BW_MS;

	while (held(board))
		assert_true(bw_clock_now() < until);
	opens_and_closes();
	assert_int_equal(access(board, F_OK), -1);
	end(child);
}

/* The directory is what people trust: who can enter it is nobody else. */
static void directory_of_others__is_stepped_around(void **state)
{
	char usual[PATH_MAX];
	struct told told;
	struct bw_ep *ep;

	strcpy(usual, one->board.dir);
	bw_ep_close(one, 0);
	bw_ep_close(other, 0);
	one = other = NULL;
	assert_int_equal(mkdir(usual, 0777), 0);
	assert_int_equal(chmod(usual, 0777), 0);
	ep = endpoint_open("udp", &told);
	assert_non_null(ep->board.map);
	assert_string_not_equal(ep->board.dir, usual);
	bw_ep_close(ep, 0);
	assert_int_equal(rmdir(usual), 0);
	assert_int_equal(symlink("/tmp", usual), 0);
	ep = endpoint_open("udp", &told);
	assert_non_null(ep->board.map);
	assert_string_not_equal(ep->board.dir, usual);
	bw_ep_close(ep, 0);
	assert_int_equal(unlink(usual), 0);
}

/* A file beyond the limit would end the process by SIGXFSZ. */
static void process_without_room_for_files__has_none(void **state)
{
	struct rlimit before, less;
	struct told told;
	struct bw_ep *ep;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	less = (struct rlimit){.rlim_cur = 1024, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	ep = endpoint_open("udp", &told);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_null(ep->board.map);
	bw_ep_close(ep, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(board__is_private_and_held),
		TEST(board__says_who_the_endpoint_is),
		TEST(board__goes_with_the_endpoint),
		TEST(board__can_be_switched_off),
		TEST(board__tells_of_peers),
		TEST(board__tells_of_the_kernel_link),
		TEST(board__tells_of_overruns),
		TEST(board__is_due_once_after_the_last_traffic),
		TEST(sheets__take_turns),
		TEST(child_of_fork__leaves_the_board),
		TEST(next_one__removes_what_a_killed_process_left),
		TEST(next_one__removes_what_was_left_by_exec),
		TEST(directory_of_others__is_stepped_around),
		TEST(process_without_room_for_files__has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
