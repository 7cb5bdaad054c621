// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the plug-in of NCCL and RCCL for libfabric does (plugin.h), between two processes: devices,
 * connections, messages of every size with many under way, and ends in good order and in none.
 */
#include <pthread.h>

#include "pair.h"
#include "plugin.h"
#include "sides.h"

enum {
	COMMS = 3,
	MESSAGES = 40, /* through each communicator */
	THREADS = 2,
	WORDS = 5 /* that a thread exchanges */
};

static const size_t sizes[] = {0,     1,     7,	    64,	    1000,    4096,   16384,
			       16385, 65536, 65537, 300001, 1 << 20, 4 << 20};
#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))
#define LARGEST (4 << 20)

/* Both directions between the two processes, one communicator after another. */
struct link {
	struct plugin *net;
	struct plugin_comm *out, *in;
};

static void link_open(struct link *l, struct plugin *net, bool first)
{
	struct plugin_handle own, other;
	bool connected = false;

	l->net = net;
	plugin_listen(net, &own);
	sides_give(&own, sizeof(own));
	sides_take(&other, sizeof(other));
	l->out = plugin_connect(net, &other);
	l->in = NULL;
	while (!connected || !l->in) {
		connected = connected || plugin_connected(l->out);
		if (!l->in)
			l->in = plugin_accept(net, &own);
	}
}

static void link_close(struct link *l)
{
	plugin_comm_close(l->out);
	plugin_comm_close(l->in);
}

static struct plugin *net_open(void)
{
	struct fi_info *devices = plugin_devices();
	struct plugin *net = calloc(1, sizeof(*net));

	SIDE_TRUE(net);
	plugin_open(net, devices);
	fi_freeinfo(devices);
	return net;
}

static void net_close(struct plugin *net)
{
	plugin_close(net);
	free(net);
}

static size_t finish(struct plugin_request *request)
{
	size_t len;

	while (!plugin_test(request, &len))
		;
	return len;
}

static struct plugin_request *send_now(struct plugin_comm *comm, const void *buf, size_t len,
				       struct fid_mr *mr)
{
	struct plugin_request *request;

	while (!(request = plugin_send(comm, buf, len, mr)))
		;
	return request;
}

static struct plugin_request *receive_now(struct plugin_comm *comm, void *buf, size_t len,
					  struct fid_mr *mr)
{
	struct plugin_request *request;

	while (!(request = plugin_receive(comm, buf, len, mr)))
		;
	return request;
}

/* One of each size both ways; the receive has room for more and tells what came. */
static void sizes_side(bool first)
{
	struct plugin *net = net_open();
	uint8_t *out = malloc(LARGEST), *in = malloc(LARGEST + 1);
	struct fid_mr *out_mr = plugin_register(net, out, LARGEST);
	struct fid_mr *in_mr = plugin_register(net, in, LARGEST + 1);
	struct link l;

	link_open(&l, net, first);
	for (uint32_t i = 0; i < SIZES; i++) {
		struct plugin_request *send, *receive = NULL;

		pair_fill(out, sizes[i], 2 * i + first);
		memset(in, 0xEE, LARGEST + 1);
		if (i % 2) /* before the message, or after it */
			receive = receive_now(l.in, in, sizes[i] + 1, in_mr);
		sides_meet();
		send = send_now(l.out, out, sizes[i], out_mr);
		if (!receive)
			receive = receive_now(l.in, in, sizes[i] + 1, in_mr);
		SIDE_IS(finish(receive), sizes[i]);
		finish(send);
		SIDE_TRUE(pair_filled(in, sizes[i], 2 * i + !first));
		SIDE_IS(in[sizes[i]], 0xEE);
	}
	sides_meet();
	link_close(&l);
	plugin_deregister(out_mr);
	plugin_deregister(in_mr);
	net_close(net);
	free(out);
	free(in);
}

static void message__of_every_size(void **state)
{
	sides_run(sizes_side);
}

/* A stream through one communicator: as many under way as there is room for. */
struct stream {
	struct plugin_comm *comm;
	bool out;
	uint32_t seed, begun, ended;
	struct plugin_request *request[PLUGIN_REQUESTS]; /* of message n: n % PLUGIN_REQUESTS */
	uint8_t *memory;
	struct fid_mr *mr;
};

/* Long ones are rare: the sum of all is to stay small. */
static size_t stream_size(uint32_t n)
{
	return n % 16 == 15 ? 1 << 20 : sizes[n * 5 % 11];
}

enum { SLOT = 1 << 20 };

static void stream_open(struct stream *s, struct plugin_comm *comm, bool out, uint32_t seed)
{
	*s = (struct stream){.comm = comm, .out = out, .seed = seed};
	s->memory = malloc((size_t)PLUGIN_REQUESTS * SLOT);
	SIDE_TRUE(s->memory);
	s->mr = plugin_register(comm->net, s->memory, (size_t)PLUGIN_REQUESTS * SLOT);
}

static void stream_begin(struct stream *s)
{
	uint32_t slot = s->begun % PLUGIN_REQUESTS;
	uint8_t *at = s->memory + (size_t)slot * SLOT;
	size_t len = stream_size(s->begun);

	if (s->out) {
		pair_fill(at, len, s->seed + s->begun);
		s->request[slot] = plugin_send(s->comm, at, len, s->mr);
	} else {
		s->request[slot] = plugin_receive(s->comm, at, SLOT, s->mr);
	}
	s->begun += s->request[slot] != NULL;
}

/* In the order in which they were begun, as collective libraries ask. */
static void stream_end(struct stream *s)
{
	uint32_t slot = s->ended % PLUGIN_REQUESTS;
	size_t len;

	if (!plugin_test(s->request[slot], &len))
		return;
	if (!s->out) {
		SIDE_IS(len, stream_size(s->ended));
		SIDE_TRUE(pair_filled(s->memory + (size_t)slot * SLOT, len, s->seed + s->ended));
	}
	s->ended++;
}

static bool stream_step(struct stream *s)
{
	if (s->begun < MESSAGES && s->begun - s->ended < PLUGIN_REQUESTS)
		stream_begin(s);
	if (s->ended < s->begun)
		stream_end(s);
	return s->ended == MESSAGES;
}

static void streams_side(bool first)
{
	struct plugin *net = net_open();
	struct stream stream[2 * COMMS];
	struct link l[COMMS];
	uint32_t over;

	for (uint32_t i = 0; i < COMMS; i++) {
		link_open(&l[i], net, first);
		stream_open(&stream[2 * i], l[i].out, true, 1000 * i + 100 * first);
		stream_open(&stream[2 * i + 1], l[i].in, false, 1000 * i + 100 * !first);
	}
	do {
		over = 0;
		for (uint32_t i = 0; i < 2 * COMMS; i++)
			over += stream_step(&stream[i]);
	} while (over < 2 * COMMS);
	sides_meet();
	for (uint32_t i = 0; i < COMMS; i++)
		link_close(&l[i]);
	for (uint32_t i = 0; i < 2 * COMMS; i++) {
		plugin_deregister(stream[i].mr);
		free(stream[i].memory);
	}
	net_close(net);
}

static void comms__with_many_under_way(void **state)
{
	sides_run(streams_side);
}

/* The threads of a program: each has an endpoint of its own. */
struct worker {
	pthread_t thread;
	struct plugin *net;
	struct link l;
	bool first;
	uint32_t number;
};

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	uint8_t *out = malloc(SLOT), *in = malloc(SLOT);
	struct fid_mr *out_mr = plugin_register(w->net, out, SLOT);
	struct fid_mr *in_mr = plugin_register(w->net, in, SLOT);

	for (uint32_t i = 0; i < WORDS; i++) {
		struct plugin_request *receive = receive_now(w->l.in, in, SLOT, in_mr), *send;
		size_t len = stream_size(3 * i + 3);

		pair_fill(out, len, 10 * w->number + i + w->first);
		send = send_now(w->l.out, out, len, out_mr);
		SIDE_IS(finish(receive), len);
		SIDE_TRUE(pair_filled(in, len, 10 * w->number + i + !w->first));
		finish(send);
	}
	plugin_deregister(out_mr);
	plugin_deregister(in_mr);
	free(out);
	free(in);
	return NULL;
}

static void threads_side(bool first)
{
	struct worker w[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.net = net_open(), .first = first, .number = i};
		link_open(&w[i].l, w[i].net, first);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		SIDE_IS(pthread_create(&w[i].thread, NULL, worker_run, &w[i]), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		SIDE_IS(pthread_join(w[i].thread, NULL), 0);
	sides_meet();
	for (uint32_t i = 0; i < THREADS; i++) {
		link_close(&w[i].l);
		net_close(w[i].net);
	}
}

static void threads__each_with_an_endpoint(void **state)
{
	sides_run(threads_side);
}

/* Whoever accepts has said all that there is to say: it may sleep, or leave, at once. */
static void answer_side(bool first)
{
	struct plugin *net = net_open();
	struct plugin_handle handle;
	struct plugin_comm *comm = NULL;

	if (first) {
		plugin_listen(net, &handle);
		sides_give(&handle, sizeof(handle));
		while (!comm)
			comm = plugin_accept(net, &handle);
	} else {
		sides_take(&handle, sizeof(handle));
		comm = plugin_connect(net, &handle);
	}
	if (first) {
		sides_meet(); /* the other one has the answer: nothing was called meanwhile */
	} else {
		while (!plugin_connected(comm))
			;
		sides_meet();
	}
	plugin_comm_close(comm);
	net_close(net);
}

static void accept__is_known_without_further_calls(void **state)
{
	sides_run(answer_side);
}

/* One side gives up with requests under way: it closes its endpoint first. The other one is told
 * what became of each of its own, and closes as well. */
static void abort_side(bool first)
{
	struct plugin_request *request[PLUGIN_REQUESTS];
	struct plugin *net = net_open();
	uint8_t *memory = calloc(PLUGIN_REQUESTS, SLOT);
	struct fid_mr *mr = plugin_register(net, memory, (size_t)PLUGIN_REQUESTS * SLOT);
	struct link l;

	link_open(&l, net, first);
	sides_meet();
	for (int i = 0; i < PLUGIN_REQUESTS; i++) {
		uint8_t *at = memory + (size_t)i * SLOT;

		/* for messages that nobody sends, and messages that nobody receives */
		request[i] =
			first ? receive_now(l.out, at, SLOT, mr) : send_now(l.out, at, SLOT, mr);
	}
	sides_meet();
	for (int i = 0; !first && i < PLUGIN_REQUESTS; i++) {
		while (!request[i]->over)
			plugin_connected(l.out);
	}
	plugin_abort(net);
	link_close(&l);
	plugin_deregister(mr);
	net_close(net);
	free(memory);
}

static void close__with_requests_under_way(void **state)
{
	sides_run(abort_side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__of_every_size),
		cmocka_unit_test(comms__with_many_under_way),
		cmocka_unit_test(threads__each_with_an_endpoint),
		cmocka_unit_test(accept__is_known_without_further_calls),
		cmocka_unit_test(close__with_requests_under_way),
	};

	return cmocka_run_group_tests_name("plugin", tests, NULL, NULL);
}
