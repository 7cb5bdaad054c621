/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file of a board: made in a directory that is this user's alone, held by a record lock, and
 * removed; and those that dead processes have left are removed, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ep.h"

#define BW_BOARD_STEPS 8 /* other names for a directory that a stranger has made */
#define BW_BOARD_TRIES 8
#define BW_BOARD_SWEEP 256 /* entries of the directory that are looked at */

/* A directory that is ours, and that nobody else can enter: a descriptor, or a negative errno. */
static int bw_board_enter(const char *path)
{
	struct stat st;
	int dir;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!fstat(dir, &st) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return dir;
	close(dir);
	return -EACCES;
}

/* The directory of this user, whose name is written to `path`. Strangers may hold its name, and the
 * first few others. */
static int bw_board_dir(const char *root, char *path, size_t room)
{
	int dir = -EACCES;

	for (int n = 0; n < BW_BOARD_STEPS && dir < 0; n++) {
		int len = n ? snprintf(path, room, "%s/beowire-%u.%d", root, geteuid(), n)
			    : snprintf(path, room, "%s/beowire-%u", root, geteuid());

		if (len < 0 || (size_t)len >= room)
			return -ENAMETOOLONG;
		dir = bw_board_enter(path);
		if (dir == -ENOENT || dir == -ENOSPC || dir == -EROFS)
			break;
	}
	return dir;
}

/* Does a process hold the lock of a file? Not this one: nobody hinders himself. */
static bool bw_board_held(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_GETLK, &lock) || lock.l_type != F_UNLCK;
}

/* Remove one file if nobody holds it. Our own are not opened: to close a file gives its locks up.
 */
static void bw_board_sweep_one(int dir, const char *name)
{
	char *end;
	long pid = strtol(name, &end, 10);
	int fd;

	if (end == name || *end != '-' || pid == getpid())
		return;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!bw_board_held(fd))
		unlinkat(dir, name, 0);
	close(fd);
}

static void bw_board_sweep(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!d) {
		if (copy >= 0)
			close(copy);
		return;
	}
	for (int i = 0; i < BW_BOARD_SWEEP && (entry = readdir(d)); i++)
		bw_board_sweep_one(dir, entry->d_name);
	closedir(d);
}

/* A file that is larger than a process may make ends it by a signal. */
static bool bw_board_allowed(void)
{
	struct rlimit most;

	return !getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur >= sizeof(struct bw_board);
}

/* All its memory is taken now, or a full file system would end the process at a write. It gets its
 * name once it is locked: what is not locked is taken for a dead one's. */
static int bw_board_make(struct bw_ep_board *b, int dir, const char *name)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[32];

	b->fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (b->fd < 0)
		return -errno;
	if (fallocate(b->fd, 0, 0, sizeof(struct bw_board)) || fcntl(b->fd, F_SETLK, &lock))
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->fd);
	if (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW))
		return -errno;
	b->map = mmap(NULL, sizeof(struct bw_board), PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->map == MAP_FAILED) {
		b->map = NULL;
		unlinkat(dir, name, 0);
		return -ENOMEM;
	}
	return 0;
}

/* When the process began, in the clock ticks that /proc counts in; 0: unknown. */
static uint64_t bw_board_started(void)
{
	char text[1024], *at;
	FILE *f = fopen("/proc/self/stat", "re");
	uint64_t value = 0;
	size_t n;

	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	at = strrchr(text, ')'); /* the second field may hold anything but this */
	for (int i = 2; at && i < 22; i++)
		at = strchr(at + 1, ' ');
	if (at)
		value = strtoull(at, NULL, 10);
	return value;
}

static void bw_board_text(char *to, size_t room, const char *from)
{
	memcpy(to, from, strnlen(from, room - 1));
}

static void bw_board_fill(struct bw_ep *ep, struct bw_board *m)
{
	struct stat st;

	memcpy(m->magic, BW_BOARD_MAGIC, sizeof(BW_BOARD_MAGIC));
	m->version = BW_BOARD_VERSION;
	m->bytes = sizeof(*m);
	m->head_bytes = offsetof(struct bw_board, sheet);
	m->sheet_bytes = sizeof(m->sheet[0]);
	m->peer_bytes = sizeof(struct bw_board_peer);
	m->wait_bytes = sizeof(struct bw_board_wait);
	m->peers_max = BW_BOARD_PEERS;
	m->waits_max = BW_BOARD_WAITS;
	m->pid = (uint32_t)getpid();
	m->uid = geteuid();
	m->started = bw_board_started();
	m->opened = ep->now;
	m->node = ep->self.node;
	m->network = stat("/proc/self/ns/net", &st) ? 0 : st.st_ino;
	m->incarnation = ep->self.inc;
	m->serial = ep->serial;
	m->engine = ep->self.engine;
	m->links = (uint16_t)(ep->self.links | (ep->kernel ? BW_LINK_KERNEL : 0));
	m->cluster = ep->self.cluster;
	m->keyed = ep->keyed;
	bw_board_text(m->host, sizeof(m->host), ep->host);
	bw_board_text(m->program, sizeof(m->program), program_invocation_short_name);
	for (int i = 0; i < ep->packets; i++)
		bw_board_text(m->iface[m->ifaces++], sizeof(m->iface[0]), ep->packet[i].name);
	if (ep->kernel)
		bw_board_text(m->iface[m->ifaces++], sizeof(m->iface[0]),
			      bw_kernel_interface(ep->kernel));
	for (int i = 1; i < BW_DROP_REASONS; i++)
		bw_board_text(m->drop_name[i], sizeof(m->drop_name[0]),
			      bw_drop_name((enum bw_drop)i));
}

static int bw_board_try(struct bw_ep *ep)
{
	struct bw_ep_board *b = &ep->board;
	char name[32];
	int dir = bw_board_dir(ep->env.status_dir, b->dir, sizeof(b->dir)), error;

	if (dir < 0)
		return dir;
	bw_board_sweep(dir);
	snprintf(name, sizeof(name), "%d-%08x", (int)getpid(), ep->self.inc);
	error = bw_board_make(b, dir, name);
	close(dir);
	if (error)
		bw_board_abandon(ep);
	else
		snprintf(b->path, sizeof(b->path), "%s/%s", b->dir, name);
	return error;
}

void bw_board_open(struct bw_ep *ep)
{
	struct bw_ep_board *b = &ep->board;
	int error = -ENOENT;

	if (!ep->env.status_dir || !bw_board_allowed())
		return;
	/* Whoever leaves a directory empty removes it, perhaps just now. */
	for (int i = 0; i < BW_BOARD_TRIES && error == -ENOENT; i++)
		error = bw_board_try(ep);
	if (error) {
		bw_log_once(BW_LOG_INFO, "board", "`beowire status` will not see this process: %s",
			    strerror(-error));
		return;
	}
	bw_board_fill(ep, b->map);
	bw_publish(ep);
}

void bw_board_unlink(struct bw_ep *ep)
{
	if (!ep->board.map)
		return;
	unlink(ep->board.path);
	rmdir(ep->board.dir); /* unless there are others */
}

void bw_board_close(struct bw_ep *ep)
{
	bw_board_unlink(ep);
	bw_board_abandon(ep);
}

void bw_board_abandon(struct bw_ep *ep)
{
	struct bw_ep_board *b = &ep->board;

	if (b->map)
		munmap(b->map, sizeof(*b->map));
	b->map = NULL;
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
	b->at = BW_NEVER;
}
