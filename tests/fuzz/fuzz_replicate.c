/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libbeowire-replicate: what whoever is in the place of its keeper answers, with any descriptors,
 * of which it takes one and leaves none open; and lists of mappings with any paths, of which each
 * area is as the list has it.
 */
#include <stdlib.h>
#include <sys/time.h>
#include <sys/un.h>

#include "descriptors.h"

static int fake_connect(int fd);
static ssize_t fake_sendmsg(int fd, const struct msghdr *m, int flags);
static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags);

#define connect(fd, name, n)  fake_connect(fd)
#define sendmsg(fd, m, flags) fake_sendmsg(fd, m, flags)
#define recvmsg(fd, m, flags) fake_recvmsg(fd, m, flags)

#include "../../adapters/replicate/keeper.c"
#include "../../adapters/replicate/maps.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROOM 16

static struct fuzz_input *in;
static bool answers; /* that came is one with a copy */

/* Somebody listens there: we, or another user. */
static int fake_connect(int fd)
{
	fuzz_socket_of(fd)->uid = geteuid() + (fuzz_u8(in) & 1);
	return fuzz_fails(ECONNREFUSED) ? -1 : 0;
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *m, int flags)
{
	fuzz_socket_of(fd);
	if (!(flags & MSG_NOSIGNAL) || m->msg_iovlen != 2)
		fuzz_bad("a request of another form");
	return fuzz_fails(EPIPE) ? -1 : 1;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags)
{
	uint8_t how = fuzz_u8(in), odd = how & 1 ? fuzz_odd(in) : 0;
	unsigned int n = odd & 1 ? fuzz_u8(in) % 5 : 1, before = fuzz_descriptors(), i;
	size_t len = odd & 2 ? fuzz_u8(in) % 4 : 1;
	uint8_t bytes[4] = {odd & 4 ? fuzz_u8(in) : 'Y'};
	struct fuzz_socket *of[4];
	ssize_t got;

	fuzz_socket_of(fd);
	if (!(flags & MSG_CMSG_CLOEXEC))
		fuzz_bad("received in another way");
	answers = false;
	if (odd & 8) {
		errno = EAGAIN;
		return -1;
	}
	for (i = 0; i < n; i++) {
		int copy = fuzz_descriptor(AF_UNIX);

		of[i] = fuzz_socket_of(copy);
		of[i]->refs++;
		close(copy);
	}
	got = fuzz_message(m, bytes, len, of, n);
	if (fuzz_descriptors() > before + 1)
		fuzz_bad("more than one descriptor was taken");
	answers = n == 1 && len == 1 && bytes[0] == 'Y';
	return got;
}

static void keeper(void)
{
	int fd = bwrp_keeper_connect("/run/user/keeper"), own = fuzz_descriptor(AF_UNIX);
	unsigned int before = fuzz_descriptors();

	if (fd >= 0 && fuzz_socket_of(fd)->uid != geteuid())
		fuzz_bad("somebody else is trusted");
	while (in->at < in->end) {
		int copy = fuzz_u8(in) & 1 ? bwrp_keeper_put(fd, "name", own)
					   : bwrp_keeper_get(fd, "name");

		if (copy >= 0 && !answers)
			fuzz_bad("a copy that is none");
		if (copy >= 0)
			close(copy);
		if (fuzz_descriptors() != before)
			fuzz_bad("a descriptor too many, or too few");
		answers = false;
	}
	close(own);
	if (fd >= 0)
		close(fd);
	if (fuzz_descriptors())
		fuzz_bad("descriptors are left open");
}

/* Any text: what is found makes sense. */
static void any_maps(void)
{
	size_t size = (size_t)(in->end - in->at), n;
	char *text = malloc(size + 1);
	struct bwrp_area areas[ROOM];

	memcpy(text, in->at, size);
	text[size] = 0;
	n = bwrp_maps_parse(text, areas, ROOM);
	if (n > ROOM)
		fuzz_bad("more areas than there is room for");
	for (const struct bwrp_area *a = areas; a < areas + n; a++) {
		if (a->path < text || a->path > text + size || a->path[0] != '/')
			fuzz_bad("a path from somewhere else");
		if (a->start >= a->end || (a->prot & ~PROT_EXEC) != PROT_READ)
			fuzz_bad("an area of another kind");
		bwrp_area_fits_huge(a);
	}
	free(text);
}

/* Lines as the kernel writes them: those that are wanted are found, in order, as they are. */
static void maps(void)
{
	static const char *const paths[] = {"/usr/lib/one", "/two three", "/gone (deleted)",
					    "[heap]",	    "",		  "/(deleted)"};
	struct bwrp_area want[ROOM], got[ROOM];
	size_t wants = 0, at = 0, lines = fuzz_u8(in) % ROOM, n;
	size_t room = fuzz_u8(in) % (ROOM + 1);
	static char text[ROOM * 256];

	for (size_t i = 0; i < lines; i++) {
		uint8_t how = fuzz_u8(in), rights = fuzz_u8(in);
		const char *path = paths[how % 6];
		struct bwrp_area a = {.start = (fuzz_number(in) >> 1) + 1,
				      .offset = fuzz_number(in),
				      .prot = rights & 1 ? PROT_READ | PROT_EXEC : PROT_READ,
				      .path = path};
		bool wanted = !(rights & 30) && how % 6 != 2 && path[0] == '/' && !(how & 64);

		a.end = a.start + (how & 128 ? 0 : 1 + (fuzz_number(in) >> 2));
		at += (size_t)sprintf(text + at, "%08lx-%08lx %c%c%c%c %08lx %02x:%02x %u    %s\n",
				      (long)a.start, (long)a.end, rights & 2 ? '-' : 'r',
				      rights & 4 ? 'w' : '-', rights & 1 ? 'x' : '-',
				      rights & 24 ? 's' : 'p', (long)a.offset, how, how,
				      how & 64 ? 0 : 7, path);
		if (wanted && a.start < a.end)
			want[wants++] = a;
	}
	text[at] = 0;
	n = bwrp_maps_parse(text, got, room);
	wants = wants < room ? wants : room;
	if (n != wants)
		fuzz_bad("another number of areas than are wanted");
	for (size_t i = 0; i < n; i++)
		if (got[i].start != want[i].start || got[i].end != want[i].end ||
		    got[i].offset != want[i].offset || got[i].prot != want[i].prot ||
		    strcmp(got[i].path, want[i].path))
			fuzz_bad("an area that the list does not have");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input script = {data, data + size};

	fuzz_script = in = &script;
	switch (fuzz_u8(in) % 3) {
	case 0:
		keeper();
		break;
	case 1:
		maps();
		break;
	default:
		any_maps();
	}
	fuzz_script = NULL;
	fuzz_descriptors_reset();
	return 0;
}
