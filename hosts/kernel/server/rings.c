/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See rings.h, and beowire_server.h for what lies in the memory. */
#include "rings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int rings_map(struct rings *r, const struct beowire_server_claim *claim, uint32_t bytes)
{
	uint8_t *area = mmap(NULL, claim->area, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	int i;

	if (area == MAP_FAILED)
		return -errno;
	r->area = area;
	r->area_bytes = claim->area;
	for (i = 0; i < BEOWIRE_RINGS; i++)
		r->ring[i] = (struct ring){
			.shared = (struct beowire_ring *)(area + claim->at[i].ring),
			.data = area + claim->at[i].data,
			.size = bytes,
		};
	r->number = claim->number;
	r->node = claim->node;
	r->cluster = claim->cluster;
	return 0;
}

int rings_open(struct rings *r, uint32_t number, const char *name)
{
	struct beowire_server_claim claim = {.number = number, .ring_bytes = 1 << 20};
	int error;

	*r = (struct rings){0};
	r->fd = open("/dev/beowire", O_RDWR | O_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	snprintf(claim.name, sizeof(claim.name), "%s", name);
	error = ioctl(r->fd, BEOWIRE_SERVER_CLAIM, &claim) ? -errno : 0;
	if (!error)
		error = rings_map(r, &claim, claim.ring_bytes);
	if (error)
		rings_close(r);
	return error;
}

void rings_close(struct rings *r)
{
	/* Both the mapping and the descriptor hold the server. */
	if (r->area)
		munmap(r->area, r->area_bytes);
	close(r->fd);
}

int rings_read_links(struct rings *r)
{
	return ioctl(r->fd, BEOWIRE_SERVER_LINKS, r->link) ? -errno : 0;
}

const struct beowire_record *rings_next(struct rings *r, enum beowire_ring_number number)
{
	struct ring *ring = &r->ring[number];

	while (__atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE) != ring->at) {
		const struct beowire_record *record =
			(const void *)(ring->data + (ring->at & (ring->size - 1)));

		if (record->type != BEOWIRE_PAD)
			return record;
		rings_consume(r, number, record);
	}
	return NULL;
}

void rings_consume(struct rings *r, enum beowire_ring_number number,
		   const struct beowire_record *record)
{
	struct ring *ring = &r->ring[number];

	ring->at += record->len;
	__atomic_store_n(&ring->shared->tail, ring->at, __ATOMIC_RELEASE);
	r->touched = true;
}

struct beowire_record *rings_reserve(struct rings *r, enum beowire_ring_number number,
				     uint16_t type, uint32_t socket, uint32_t bytes)
{
	struct ring *ring = &r->ring[number];
	uint32_t len = (uint32_t)sizeof(struct beowire_record) + ((bytes + 15) & ~15u);
	uint32_t at = ring->at & (ring->size - 1),
		 pad = len > ring->size - at ? ring->size - at : 0;
	uint32_t used = ring->at - __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
	struct beowire_record *record = (void *)(ring->data + at);

	if (len + pad > ring->size - used)
		return NULL;
	if (pad) {
		record->len = pad;
		record->type = BEOWIRE_PAD;
		ring->at += pad;
		record = (void *)ring->data;
	}
	memset(record, 0, sizeof(*record));
	record->len = len;
	record->type = type;
	record->socket = socket;
	record->bytes = bytes;
	return record;
}

void rings_commit(struct rings *r, enum beowire_ring_number number,
		  const struct beowire_record *record)
{
	struct ring *ring = &r->ring[number];

	ring->at += record->len;
	__atomic_store_n(&ring->shared->head, ring->at, __ATOMIC_RELEASE);
	r->touched = true;
}

int rings_turn(struct rings *r, int64_t timeout_ns)
{
	struct beowire_server_turn turn = {.timeout_ns = timeout_ns};

	r->touched = false;
	return ioctl(r->fd, BEOWIRE_SERVER_TURN, &turn) ? -errno : 0;
}
