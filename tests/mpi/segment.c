/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What hostile programs on a job's segment share. See segment.h. */
#include "segment.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

uint64_t segment_seed = 1;

void segment_fail(const char *what)
{
	perror(what);
	exit(1);
}

/* xorshift64* */
uint32_t draw(uint32_t below)
{
	segment_seed ^= segment_seed >> 12;
	segment_seed ^= segment_seed << 25;
	segment_seed ^= segment_seed >> 27;
	return (uint32_t)((segment_seed * 0x2545F4914F6CDD1Dull >> 32) % below);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_until(uint64_t ns)
{
	struct timespec at = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

void enter(const char *namespace)
{
	int fd = open(namespace, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		segment_fail(namespace);
	close(fd);
}

int packet(const char *interface, int protocol, uint8_t *mac, int *ifindex)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons((uint16_t)protocol));
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_protocol = htons((uint16_t)protocol)};
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	if (fd < 0 || ioctl(fd, SIOCGIFINDEX, &ifr))
		segment_fail(interface);
	*ifindex = at.sll_ifindex = ifr.ifr_ifindex;
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || ioctl(fd, SIOCGIFHWADDR, &ifr))
		segment_fail(interface);
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	return fd;
}

void ear_deaf_to(struct ear *ear, const uint8_t *mac)
{
	uint32_t first =
		(uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 | (uint32_t)mac[2] << 8 | mac[3];
	struct sock_filter code[] = {
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, 6},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, first},
		{BPF_LD | BPF_H | BPF_ABS, 0, 0, 10},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)mac[4] << 8 | mac[5]},
		{BPF_RET | BPF_K, 0, 0, 0},
		{BPF_RET | BPF_K, 0, 0, UINT32_MAX},
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	if (setsockopt(ear->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		segment_fail("filter");
}

/* Returns whether the job is another one. */
static bool keep(struct ear *ear, const uint8_t *frame, uint32_t n)
{
	struct bw_hdr h;
	struct kept *k;
	uint32_t at = 14;
	bool other;

	if (n < at + sizeof(h) || memcmp(frame, ear->victim_mac, 6))
		return false;
	if (frame[12] == 0x08 && frame[13] == 0x00) {
		at += 20 + 8;
		if (n < at + sizeof(h) || frame[23] != 17)
			return false;
		memcpy(&ear->victim_port, frame + 36, sizeof(ear->victim_port));
		memcpy(&ear->victim_ip, frame + 30, sizeof(ear->victim_ip));
	} else if (frame[12] != BW_ETHERTYPE >> 8 || frame[13] != (BW_ETHERTYPE & 0xFF)) {
		return false;
	}
	memcpy(&h, frame + at, sizeof(h));
	if (h.magic != BW_MAGIC)
		return false;
	other = h.dst_engine != ear->engine;
	if (other) { /* of another job: its frames would reach nobody any more */
		ear->engine = h.dst_engine;
		ear->kept_next = 0;
	}
	k = &ear->kept[ear->kept_next % KEPT];
	k->len = n - at < FRAME_BYTES ? n - at : FRAME_BYTES;
	memcpy(k->bytes, frame + at, k->len);
	ear->kept_next++;
	ear->kept_n = ear->kept_next < KEPT ? ear->kept_next : KEPT;
	ear->heard_ns = now_ns();
	return other;
}

bool ear_listen(struct ear *ear)
{
	static uint8_t frame[65536];
	bool other = false;

	for (int i = 0; i < BURST; i++) {
		ssize_t n = recv(ear->fd, frame, sizeof(frame), MSG_DONTWAIT);

		if (n < 0)
			break;
		other |= keep(ear, frame, (uint32_t)n);
	}
	return other;
}

bool ear_hears(const struct ear *ear)
{
	return ear->kept_n && now_ns() - ear->heard_ns <= SILENCE_NS;
}
