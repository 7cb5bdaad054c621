/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making packet sockets. What is set here cannot be undone by whoever gets the socket:
 *
 * - The filter passes frames for its engine alone, and is locked (SO_LOCK_FILTER).
 * - The socket is the only member of a fan-out group of its own: such sockets cannot be bound again
 *   (packet_do_bind() in net/packet/af_packet.c) nor join another group (fanout_add()).
 * - The ring is mapped by this process: as long as anybody has it mapped, no ring can be taken away
 *   or added (packet_set_ring()), nor headers for offloads switched on (PACKET_VNET_HDR).
 */
#include "maker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "ring_shape.h"
#include "wire.h"

#define BS_SNDBUF (8 << 20) /* bytes of frames on their way */

static uint32_t bs_swap(uint16_t value)
{
	return (uint32_t)(value & 0xFF) << 8 | (uint32_t)value >> 8;
}

/* Whole frames with our magic, for this engine, to the interface's own address. */
static int bs_make_filter(int fd, uint16_t engine)
{
	struct sock_filter code[] = {
		{BPF_LD | BPF_H | BPF_ABS, 0, 0, ETH_HLEN + offsetof(struct bw_hdr, dst_engine)},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 5, bs_swap(engine)},
		{BPF_LD | BPF_H | BPF_ABS, 0, 0, ETH_HLEN + offsetof(struct bw_hdr, magic)},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, bs_swap(BW_MAGIC)},
		{BPF_LD | BPF_H | BPF_ABS, 0, 0, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, PACKET_HOST},
		{BPF_RET | BPF_K, 0, 0, UINT32_MAX},
		{BPF_RET | BPF_K, 0, 0, 0},
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)))
		return -errno;
	return 0;
}

static int bs_make_ring(struct bs_job *j)
{
	struct tpacket_req shape;
	int version = TPACKET_V2;

	if (setsockopt(j->packet, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)))
		return -errno;
	for (uint32_t bytes = j->bytes; bytes >= BW_RING_MIN; bytes /= 2) {
		shape = bw_ring_shape(j->mtu, bytes);
		if (setsockopt(j->packet, SOL_PACKET, PACKET_RX_RING, &shape, sizeof(shape)))
			continue;
		j->slot_bytes = shape.tp_frame_size;
		j->block_bytes = shape.tp_block_size;
		j->blocks = shape.tp_block_nr;
		j->bytes = j->block_bytes * j->blocks;
		j->ring = mmap(NULL, j->bytes, PROT_READ, MAP_SHARED, j->packet, 0);
		if (j->ring != MAP_FAILED)
			return 0;
		j->ring = NULL;
		return -errno;
	}
	return -ENOMEM;
}

static int bs_make_bound(const struct bs_job *j)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(j->ethertype),
		.sll_ifindex = j->index,
	};
	int alone = (PACKET_FANOUT_CPU | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	int on = 1, bytes = BS_SNDBUF;

	setsockopt(j->packet, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on));
	if (setsockopt(j->packet, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(j->packet, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (bind(j->packet, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(j->packet, SOL_PACKET, PACKET_FANOUT, &alone, sizeof(alone)))
		return -errno;
	return 0;
}

static int bs_make_known(struct bs_job *j)
{
	socklen_t n = sizeof(j->cookie);
	struct stat told;

	if (getsockopt(j->packet, SOL_SOCKET, SO_COOKIE, &j->cookie, &n) || fstat(j->packet, &told))
		return -errno;
	j->inode = told.st_ino;
	return 0;
}

static void bs_unmake(struct bs_job *j)
{
	if (j->ring)
		munmap(j->ring, j->bytes);
	if (j->packet >= 0)
		close(j->packet);
	j->ring = NULL;
	j->packet = -1;
}

/* A socket with its ring; nothing arrives before it is bound. */
static void bs_make_begun(struct bs_job *j)
{
	j->ring = NULL;
	j->step = "a packet socket";
	j->packet = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	j->error = j->packet < 0 ? -errno : 0;
	if (!j->error) {
		j->step = "its receive ring";
		j->error = bs_make_ring(j);
	}
}

static void bs_make_ended(struct bs_job *j)
{
	if (!j->error) {
		j->step = "its filter";
		j->error = bs_make_filter(j->packet, j->engine);
	}
	if (!j->error) {
		j->step = "binding it";
		j->error = bs_make_bound(j);
	}
	if (!j->error) {
		j->step = "its number";
		j->error = bs_make_known(j);
	}
	if (j->error)
		bs_unmake(j);
}

/* ---- spare ones ---- */

static bool bs_spares_want(const struct bs_makers *m)
{
	return m->spare_mtu && m->spares + m->spares_begun < BS_SPARES;
}

/* One that nobody wants as it is, since the MTU has changed. */
static bool bs_spares_stale(const struct bs_makers *m)
{
	return m->spares && m->spare[m->spares - 1].mtu != m->spare_mtu;
}

/* The job has the socket and the ring of a spare one now. False: none fits. With the mutex held. */
static bool bs_spare_use(struct bs_makers *m, struct bs_job *j)
{
	const struct bs_job *ready;

	if (!m->spares || bs_spares_stale(m) || j->mtu != m->spare_mtu ||
	    j->bytes != BW_RING_DEFAULT)
		return false;
	ready = &m->spare[--m->spares];
	j->error = 0;
	j->packet = ready->packet;
	j->ring = ready->ring;
	j->bytes = ready->bytes;
	j->slot_bytes = ready->slot_bytes;
	j->block_bytes = ready->block_bytes;
	j->blocks = ready->blocks;
	return true;
}

/* Makes one, or closes one. With the mutex held, but for that. */
static void bs_spares_tend(struct bs_makers *m)
{
	struct bs_job one = {.mtu = m->spare_mtu, .bytes = BW_RING_DEFAULT};

	if (bs_spares_stale(m)) {
		one = m->spare[--m->spares];
		pthread_mutex_unlock(&m->mutex);
		bs_unmake(&one);
		pthread_mutex_lock(&m->mutex);
		return;
	}
	m->spares_begun++;
	pthread_mutex_unlock(&m->mutex);
	bs_make_begun(&one);
	/* A ring that is smaller for want of memory is not kept for better times. */
	if (!one.error && one.bytes != BW_RING_DEFAULT)
		one.error = -ENOMEM;
	if (one.error)
		bs_unmake(&one);
	pthread_mutex_lock(&m->mutex);
	m->spares_begun--;
	if (one.error)
		m->spare_mtu = 0; /* until somebody comes again */
	else
		m->spare[m->spares++] = one;
}

/* ---- the threads ---- */

static void *bs_maker_main(void *arg)
{
	struct bs_makers *m = arg;
	uint64_t one = 1;

	int error = bs_confine_rights();

	pthread_mutex_lock(&m->mutex);
	m->tid = (pid_t)syscall(SYS_gettid);
	m->error = error ? error : m->error;
	m->begun++;
	pthread_cond_broadcast(&m->begins);
	for (;;) {
		struct bs_job *j = m->todo;
		bool begun;

		if (!j) {
			if (bs_spares_stale(m) || bs_spares_want(m))
				bs_spares_tend(m);
			else
				pthread_cond_wait(&m->more, &m->mutex);
			continue;
		}
		m->todo = j->next;
		if (!m->todo)
			m->todo_end = &m->todo;
		begun = !j->close && bs_spare_use(m, j);
		pthread_mutex_unlock(&m->mutex);
		if (j->close) {
			bs_unmake(j);
		} else {
			if (!begun)
				bs_make_begun(j);
			bs_make_ended(j);
		}
		pthread_mutex_lock(&m->mutex);
		j->next = m->done;
		m->done = j;
		while (write(m->bell, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
	return NULL;
}

int bs_makers_start(struct bs_makers *m)
{
	pthread_t thread;
	int error;

	*m = (struct bs_makers){.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	m->todo_end = &m->todo;
	pthread_mutex_init(&m->mutex, NULL);
	pthread_cond_init(&m->more, NULL);
	pthread_cond_init(&m->begins, NULL);
	if (m->bell < 0)
		return -errno;
	while (m->threads < BS_MAKERS) {
		error = pthread_create(&thread, NULL, bs_maker_main, m);
		if (error)
			return -error;
		m->threads++;
	}
	/* What they do at their beginning must not meet with what is forbidden afterwards. */
	pthread_mutex_lock(&m->mutex);
	while (m->begun < m->threads)
		pthread_cond_wait(&m->begins, &m->mutex);
	error = m->error;
	pthread_mutex_unlock(&m->mutex);
	return error;
}

void bs_makers_spare(struct bs_makers *m, uint32_t mtu)
{
	pthread_mutex_lock(&m->mutex);
	m->spare_mtu = mtu;
	pthread_cond_broadcast(&m->more);
	pthread_mutex_unlock(&m->mutex);
}

void bs_makers_give(struct bs_makers *m, struct bs_job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&m->mutex);
	if (!job->close)
		m->spare_mtu = job->mtu; /* that of who comes next as well, most likely */
	*m->todo_end = job;
	m->todo_end = &job->next;
	pthread_cond_signal(&m->more);
	pthread_mutex_unlock(&m->mutex);
}

struct bs_job *bs_makers_take(struct bs_makers *m)
{
	struct bs_job *j;
	uint64_t count;

	pthread_mutex_lock(&m->mutex);
	j = m->done;
	if (j)
		m->done = j->next;
	else if (read(m->bell, &count, sizeof(count)) < 0)
		j = NULL;
	pthread_mutex_unlock(&m->mutex);
	return j;
}

bool bs_makers_look(const struct bs_makers *m, ino_t *inode, unsigned int n)
{
	unsigned long each;
	char line[256];
	bool *found;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/self/task/%d/net/packet", m->tid);
	f = fopen(line, "re");
	found = calloc(n, sizeof(*found));
	/* sk, RefCnt, Type, Proto, Iface, R, Rmem, User, Inode */
	while (f && found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %lu", &each) != 1)
			continue;
		for (unsigned int i = 0; i < n; i++)
			found[i] |= inode[i] == each;
	}
	for (unsigned int i = 0; f && found && i < n; i++)
		inode[i] = found[i] ? inode[i] : 0;
	n = f && found;
	if (f)
		fclose(f);
	free(found);
	return n;
}
