// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ncclnet PLUGIN CASE -p PROVIDER -s OWN [SERVER]: plays the part of NCCL to a plug-in for
 * networks, with memory of the host, and checks every byte. Without SERVER it waits for the other
 * one at its own address; they exchange the plug-in's handles by TCP. The plug-in's own headers say
 * what it exports (version 6 of its variant for hosts without CUDA).
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nccl/net.h>

#define PORT 9228 /* where pair.sh looks for it */

enum {
	COMMS = 4,     /* of each direction */
	MESSAGES = 96, /* through each */
	UNDER_WAY = 8, /* requests in a communicator, as NCCL has */
	ROUNDS = 20,   /* of connecting and closing */
	SLOT = 4 << 20
};

static const int sizes[] = {0,	   1,	  8,	 1000,	 4096,	  16384,  16385,
			    65536, 65537, 99999, 524288, 1 << 20, 4 << 20};
#define SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

static const ncclNet_v6_t *net;
static int channel = -1;

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void say(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
		const char *format, ...)
{
	va_list list;

	if (level > NCCL_LOG_INFO)
		return;
	va_start(list, format);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
}

static void give(const void *bytes, size_t n)
{
	CHECK(send(channel, bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static void take(void *bytes, size_t n)
{
	CHECK(recv(channel, bytes, n, MSG_WAITALL) == (ssize_t)n);
}

static void meet(void)
{
	char byte = 0;

	give(&byte, 1);
	take(&byte, 1);
}

static void channel_open(const char *own, const char *server)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	CHECK(fd >= 0);
	CHECK(inet_pton(AF_INET, server ? server : own, &at.sin_addr) == 1);
	if (server) {
		CHECK(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
		channel = fd;
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0);
	channel = accept(fd, NULL, NULL);
	CHECK(channel >= 0);
	close(fd);
}

static void fill(unsigned char *at, int n, unsigned int seed)
{
	for (int i = 0; i < n; i++)
		at[i] = (unsigned char)((i ^ i >> 8 ^ i >> 16) * 37 + (int)seed);
}

static bool filled(const unsigned char *at, int n, unsigned int seed)
{
	for (int i = 0; i < n; i++) {
		if (at[i] != (unsigned char)((i ^ i >> 8 ^ i >> 16) * 37 + (int)seed))
			return false;
	}
	return true;
}

/* A communicator of each direction with the other side. */
struct both {
	void *listening, *out, *in;
};

static void both_open(struct both *b, int device)
{
	char own[NCCL_NET_HANDLE_MAXSIZE] = {0}, other[NCCL_NET_HANDLE_MAXSIZE];

	memset(b, 0, sizeof(*b));
	CHECK(net->listen(device, own, &b->listening) == ncclSuccess);
	give(own, sizeof(own));
	take(other, sizeof(other));
	while (!b->out || !b->in) {
		if (!b->out)
			CHECK(net->connect(device, other, &b->out) == ncclSuccess);
		if (!b->in)
			CHECK(net->accept(b->listening, &b->in) == ncclSuccess);
	}
}

static void both_close(struct both *b)
{
	CHECK(net->closeSend(b->out) == ncclSuccess);
	CHECK(net->closeRecv(b->in) == ncclSuccess);
	CHECK(net->closeListen(b->listening) == ncclSuccess);
}

/* One direction of one communicator. */
struct stream {
	void *comm, *mr;
	bool out;
	unsigned int seed;
	int begun, ended, messages;
	unsigned char *memory;
	void *request[UNDER_WAY];
};

static void stream_open(struct stream *s, void *comm, bool out, unsigned int seed, int messages)
{
	*s = (struct stream){.comm = comm, .out = out, .seed = seed, .messages = messages};
	s->memory = aligned_alloc(4096, (size_t)UNDER_WAY * SLOT);
	CHECK(s->memory);
	CHECK(net->regMr(comm, s->memory, (size_t)UNDER_WAY * SLOT, NCCL_PTR_HOST, &s->mr) ==
	      ncclSuccess);
}

static void stream_close(struct stream *s)
{
	CHECK(net->deregMr(s->comm, s->mr) == ncclSuccess);
	free(s->memory);
}

static int stream_size(const struct stream *s, int n)
{
	return s->messages == SIZES ? sizes[n] : n % 32 == 31 ? SLOT : sizes[n * 5 % (SIZES - 1)];
}

static void stream_begin(struct stream *s)
{
	int slot = s->begun % UNDER_WAY, tag = 0, room = SLOT, len = stream_size(s, s->begun);
	void *at = s->memory + (size_t)slot * SLOT;

	s->request[slot] = NULL;
	if (s->out) {
		fill(at, len, s->seed + (unsigned int)s->begun);
		CHECK(net->isend(s->comm, at, len, tag, s->mr, &s->request[slot]) == ncclSuccess);
	} else {
		CHECK(net->irecv(s->comm, 1, &at, &room, &tag, &s->mr, &s->request[slot]) ==
		      ncclSuccess);
	}
	s->begun += s->request[slot] != NULL;
}

static void stream_end(struct stream *s)
{
	int slot = s->ended % UNDER_WAY, done = 0, len = -1, tag = 0;
	int wanted = stream_size(s, s->ended);
	void *at = s->memory + (size_t)slot * SLOT, *flush = NULL;

	CHECK(net->test(s->request[slot], &done, &len) == ncclSuccess);
	if (!done)
		return;
	CHECK(len == wanted);
	if (!s->out) {
		CHECK(net->iflush(s->comm, 1, &at, &len, &s->mr, &flush) == ncclSuccess);
		while (flush && !tag)
			CHECK(net->test(flush, &tag, NULL) == ncclSuccess);
		CHECK(filled(at, len, s->seed + (unsigned int)s->ended));
	}
	s->ended++;
}

static void streams_run(struct stream *s, int n)
{
	int over;

	do {
		over = 0;
		for (int i = 0; i < n; i++) {
			if (s[i].begun < s[i].messages && s[i].begun - s[i].ended < UNDER_WAY)
				stream_begin(&s[i]);
			if (s[i].ended < s[i].begun)
				stream_end(&s[i]);
			over += s[i].ended == s[i].messages;
		}
	} while (over < n);
}

static void exchange(bool first, int device, int comms, int messages)
{
	struct stream s[2 * COMMS];
	struct both b[COMMS];

	for (int i = 0; i < comms; i++) {
		unsigned int seed = 1000 * (unsigned int)i;

		both_open(&b[i], device);
		stream_open(&s[2 * i], b[i].out, true, seed + first, messages);
		stream_open(&s[2 * i + 1], b[i].in, false, seed + !first, messages);
	}
	streams_run(s, 2 * comms);
	meet();
	for (int i = 0; i < comms; i++) {
		stream_close(&s[2 * i]);
		stream_close(&s[2 * i + 1]);
		both_close(&b[i]);
	}
}

static void properties(bool first, int devices)
{
	for (int i = 0; i < devices; i++) {
		ncclNetProperties_v6_t p;

		memset(&p, 0, sizeof(p));
		CHECK(net->getProperties(i, &p) == ncclSuccess);
		printf("device %d: %s, %d Mbit/s, PCI path %s, %d communicators, memory %d\n", i,
		       p.name, p.speed, p.pciPath ? p.pciPath : "none", p.maxComms, p.ptrSupport);
		CHECK(p.name && *p.name && p.maxComms > 0 && p.maxRecvs >= 1);
		CHECK(p.ptrSupport & NCCL_PTR_HOST);
		CHECK(p.speed >= 0);
	}
	meet();
}

static void all_sizes(bool first, int devices)
{
	exchange(first, 0, 1, SIZES);
}

static void many(bool first, int devices)
{
	exchange(first, devices - 1, COMMS, MESSAGES);
}

static void again(bool first, int devices)
{
	for (int i = 0; i < ROUNDS; i++)
		exchange(first, i % devices, 1, 4);
}

/* Both end with receives that nobody sends to: the plug-in gives up its endpoint. */
static void unfinished(bool first, int devices)
{
	int tag = 0, room = SLOT;
	struct stream s;
	struct both b;
	void *at, *request = NULL;

	both_open(&b, 0);
	stream_open(&s, b.in, false, 0, 1);
	at = s.memory;
	CHECK(net->irecv(b.in, 1, &at, &room, &tag, &s.mr, &request) == ncclSuccess && request);
	meet();
	stream_close(&s);
	net->closeRecv(b.in);
	net->closeSend(b.out);
	net->closeListen(b.listening);
}

static const struct {
	const char *name;
	void (*run)(bool first, int devices);
} cases[] = {
	{"properties", properties}, {"sizes", all_sizes},	{"many", many},
	{"again", again},	    {"unfinished", unfinished},
};

int main(int argc, char **argv)
{
	const char *server = argc == 8 ? argv[7] : NULL;
	int devices = 0;
	void *library;

	if (argc < 7 || argc > 8 || strcmp(argv[3], "-p") != 0 || strcmp(argv[5], "-s") != 0) {
		fprintf(stderr, "ncclnet PLUGIN CASE -p PROVIDER -s OWN [SERVER]\n");
		return 2;
	}
	setenv("FI_PROVIDER", argv[4], 1);
	channel_open(argv[6], server);
	library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	net = dlsym(library, "ncclNetPlugin_v6");
	CHECK(net);
	CHECK(net->init(say) == ncclSuccess);
	CHECK(net->devices(&devices) == ncclSuccess && devices > 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[2], cases[i].name) != 0)
			continue;
		cases[i].run(!server, devices);
		CHECK(net->fini() == ncclSuccess);
		printf("%s: good\n", argv[2]);
		return 0;
	}
	fprintf(stderr, "%s: no such case\n", argv[2]);
	return 2;
}
