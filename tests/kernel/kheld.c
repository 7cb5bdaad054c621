/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See kheld.h. */
#include "kheld.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kuser.h"

uint64_t kt_held(void)
{
	return kt_parameter("held_bytes");
}

uint64_t kt_listed(const char *netns, int fd, bool sends)
{
	uint64_t bytes = 0, sending = 0;
	unsigned long inode;
	char line[256];
	struct stat st;
	FILE *f;

	assert_int_equal(fstat(fd, &st), 0);
	kt_enter(netns);
	f = fopen("/proc/thread-self/net/beowire/sockets", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %*s %lu %" SCNu64, &sending,
			   &inode, &bytes) == 3 &&
		    inode == st.st_ino)
			break;
	fclose(f);
	return sends ? sending : bytes;
}

uint64_t kt_charged(int fd)
{
	return kt_listed("b", fd, false);
}

void kt_port_of(int fd, uint64_t *memory, uint64_t *arriving)
{
	unsigned wanted = kt_at(fd).sbw_port, number;
	char line[256];
	FILE *f;

	kt_enter("b");
	f = fopen("/proc/thread-self/net/beowire/ports", "r");
	assert_non_null(f);
	*memory = *arriving = UINT64_MAX;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%u %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64, &number, memory,
			   arriving) == 3 &&
		    number == wanted)
			break;
	fclose(f);
}

uint64_t kt_arriving(int fd)
{
	uint64_t memory, bytes;

	kt_port_of(fd, &memory, &bytes);
	return bytes;
}

void kt_hurt(struct kt_frame *f, long wanted)
{
	uint8_t *part = kt_part(f, BW_PART_MESSAGE, 0), *bulk = kt_part(f, BW_PART_BULK, 0);
	struct bw_part_bulk b;
	struct bw_part_msg m;

	if (bulk)
		memcpy(&b, bulk, sizeof(b));
	if (bulk && (wanted == HURT_PULLED || (wanted == HURT_BEHIND && b.offset >= KT_ARRIVED)))
		f->len = 0;
	if (!part)
		return;
	memcpy(&m, part, sizeof(m));
	if (wanted == HURT_REST && m.offset)
		f->len = 0;
	if (wanted == HURT_LONGER && m.part.plen)
		m.total = m.part.plen + 63;
	memcpy(part, &m, sizeof(m));
}

void kt_answer(const struct kt_pair *p)
{
	struct sockaddr_beowire from;
	socklen_t len = sizeof(from);
	char byte;

	assert_true(recvfrom(p->b, &byte, 1, MSG_PEEK, (struct sockaddr *)&from, &len) >= 0);
	assert_int_equal(kt_send_to(p->b, "y", 1, &from), 1);
	assert_int_equal(recv(p->a, &byte, 1, 0), 1);
}
