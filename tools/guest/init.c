/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first process of a guest. It makes the host's root directory its own, with all writes kept
 * in the guest's memory, runs /job with /bin/sh on the second serial line, looks for leaked
 * memory, and ends the guest with the job's exit status. What else it needs to know lies beside it
 * in the initial file system: /modules (files to load, in order), /release (where the kernel's
 * modules lie), /shares (directories that are the host's own), /limit (seconds after the boot when
 * the job is to have ended, if it has to: else what runs is told, and the guest ended). Where /bare lies beside /job, the
 * host's root directory is not used: the initial file system has all that the job needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tell.h"

#define EXIT_PORT   0xf4 /* of QEMU's isa-debug-exit */
#define EXIT_BROKEN 125	 /* the guest could not be set up */
#define PATH_ROOM   4096
#define LEAK_FINDER "/sys/kernel/debug/kmemleak"
#define LEAK_AGE_S  6
#define NINE_P	    "trans=virtio,version=9p2000.L,msize=524288"

/* Where the job's root directory is made ready. */
static const char *root = "/root";

static void end(int status)
{
	sync();
	if (ioperm(EXIT_PORT, 4, 1) == 0)
		outb((unsigned char)status, EXIT_PORT);
	for (;;)
		pause();
}

static void fail(const char *format, ...)
{
	int error = errno;
	va_list args;

	fputs("beowire guest: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(error));
	end(EXIT_BROKEN);
}

static void make_directory(const char *path)
{
	char part[PATH_ROOM + 32]; /* the longest that callers make */

	snprintf(part, sizeof(part), "%s", path);
	for (char *at = part + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(part, 0755);
		*at = '/';
	}
	if (mkdir(part, 0755) && errno != EEXIST)
		fail("cannot make %s", path);
}

static void attach(const char *what, const char *where, const char *type, unsigned long flags,
		   const char *options)
{
	make_directory(where);
	if (mount(what, where, type, flags, options))
		fail("cannot mount %s on %s", what, where);
}

/* The same, `where` as the job will see it. */
static void attach_below(const char *what, const char *where, const char *type, const char *options)
{
	char path[PATH_ROOM + 32];

	snprintf(path, sizeof(path), "%s%s", root, where);
	attach(what, path, type, 0, options);
}

/* The lines of a file, one call each; the file may be missing. */
static void each_line(const char *file, void (*use)(char *line))
{
	FILE *in = fopen(file, "re");
	char line[PATH_ROOM];

	while (in && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			use(line);
	}
	if (in)
		fclose(in);
}

static void load_module(char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
		fail("cannot load %s", path);
	close(fd);
}

/* The kernel's modules, where modprobe looks for them: "RELEASE DIRECTORY". */
static void attach_modules(char *line)
{
	char from[PATH_ROOM + 8], to[PATH_ROOM + 32];
	char *directory = strchr(line, ' ');

	if (!directory)
		return;
	*directory++ = '\0';
	snprintf(from, sizeof(from), "%s%s", root, directory);
	snprintf(to, sizeof(to), "%s/lib/modules/%s", root, line);
	attach(from, to, NULL, MS_BIND, NULL);
}

/* A directory of the host that the guest may write to: "TAG PATH". */
static void attach_share(char *line)
{
	char *path = strchr(line, ' ');

	if (!path)
		return;
	*path++ = '\0';
	attach_below(line, path, "9p", NINE_P);
}

static void set_up_root(void)
{
	if (access("/bare", F_OK) == 0) {
		root = "";
	} else {
		attach("root", "/host", "9p", MS_RDONLY, NINE_P ",cache=loose");
		attach("tmpfs", "/over", "tmpfs", 0, "mode=755");
		make_directory("/over/upper");
		make_directory("/over/work");
		attach("overlay", root, "overlay", 0,
		       "lowerdir=/host,upperdir=/over/upper,workdir=/over/work");
		each_line("/release", attach_modules);
	}
	attach_below("tmpfs", "/run", "tmpfs", "mode=755");
	each_line("/shares", attach_share);
	attach_below("proc", "/proc", "proc", NULL);
	attach_below("sysfs", "/sys", "sysfs", NULL);
	attach_below("cgroup2", "/sys/fs/cgroup", "cgroup2", NULL);
	attach_below("debugfs", "/sys/kernel/debug", "debugfs", NULL);
	if (*root)
		attach_below("devtmpfs", "/dev", "devtmpfs", NULL);
	attach_below("devpts", "/dev/pts", "devpts", "ptmxmode=666");
	attach_below("tmpfs", "/dev/shm", "tmpfs", "mode=1777");
	symlink("/proc/self/fd", *root ? "/root/dev/fd" : "/dev/fd");
}

static void copy_job(void)
{
	int from = open("/job", O_RDONLY | O_CLOEXEC);
	int to = open(*root ? "/root/run/job" : "/run/job", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	char block[PATH_ROOM];
	ssize_t n = 0;

	while (from >= 0 && to >= 0 && (n = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)n) != n)
			break;
	if (from < 0 || to < 0 || n)
		fail("cannot copy the job");
	close(from);
	close(to);
}

/* Bytes go out as they are: no carriage returns. */
static void open_output(void)
{
	int out = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);
	int in = open("/dev/null", O_RDONLY);
	struct termios mode;

	if (out < 0 || in < 0)
		fail("cannot open the second serial line");
	tcgetattr(out, &mode);
	cfmakeraw(&mode);
	tcsetattr(out, TCSANOW, &mode);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
}

/* Of /limit; 0: none. */
static long limit_s;

static void read_limit(char *line)
{
	limit_s = strtol(line, NULL, 10);
}

/* Until a process has ended. SIGCHLD is blocked. */
static void await_child(const sigset_t *child)
{
	struct timespec now;
	char why[100];

	if (!limit_s) {
		sigwaitinfo(child, NULL);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &now); /* since the boot */
	now = (struct timespec){.tv_sec = limit_s - now.tv_sec};
	if (now.tv_sec > 0) {
		sigtimedwait(child, NULL, &now);
		return;
	}
	snprintf(why, sizeof(why), "the job did not end within %ld s of the guest", limit_s);
	guest_tell(why);
	end(EXIT_BROKEN);
}

static int run_job(void)
{
	sigset_t child, before;
	pid_t job, gone;
	int status = 0;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	job = fork();
	if (job < 0)
		fail("cannot start the job");
	if (!job) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		setsid();
		open_output();
		execl("/bin/sh", "sh", "/run/job", NULL);
		_exit(127);
	}
	/* Orphans end up here as well. */
	while ((gone = waitpid(-1, &status, WNOHANG)) != job)
		if (gone <= 0)
			await_child(&child);
	int out = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);

	if (out >= 0)
		tcdrain(out);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool tell_leak_finder(const char *what)
{
	int fd = open(LEAK_FINDER, O_WRONLY | O_CLOEXEC);
	bool told = fd >= 0 && write(fd, what, strlen(what)) > 0;

	if (fd >= 0)
		close(fd);
	return told;
}

static void tell_line(char *line)
{
	fprintf(stderr, "%s\n", line);
}

/*
 * Memory that nothing points to any more is told on the console, where the kernel has kmemleak. It
 * spares what is younger than five seconds, and a first look may take what moves for lost.
 */
static void tell_leaks(void)
{
	if (access(LEAK_FINDER, W_OK))
		return;
	sleep(LEAK_AGE_S);
	if (!tell_leak_finder("scan") || !tell_leak_finder("scan"))
		fail("cannot look for leaks");
	each_line(LEAK_FINDER, tell_line);
}

int main(void)
{
	int status;

	attach("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	freopen("/dev/console", "w", stderr);
	setvbuf(stderr, NULL, _IOLBF, 0);
	each_line("/modules", load_module);
	set_up_root();
	copy_job();
	each_line("/limit", read_limit);
	sethostname("guest", 5);
	/* As the root of all, not of this process only: else there are no user namespaces. */
	if (*root &&
	    (chdir(root) || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/")))
		fail("cannot change to the host's root directory");
	fputs("beowire guest: set up\n", stderr); /* the host looks for it: vm/machine.py */
	status = run_job();
	tell_leaks();
	end(status);
}
