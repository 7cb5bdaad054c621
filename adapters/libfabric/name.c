// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of endpoints: see name.h. A question is 16 bytes and padding, an answer repeats these bytes
 * and adds the address. Both are single datagrams; the asker repeats its question until it is
 * answered. A question's source may be forged, so that it is longer than its answer: nobody can
 * have more bytes sent to a victim than he sends. An answer is no question, then: two such services
 * do not answer each other for ever.
 */
#include "bwf.h"
#include "count.h"
#include "name.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define BWF_NAME_MAGIC	0x3F454D414E5742BEULL /* "\xBE" "BWNAME?" */
#define BWF_NAME_TRY_NS 100000000ULL
#define BWF_NAME_TRIES	100 /* together ten seconds: the other program may still be starting */

/* A name inside a struct bw_addr. libbeowire's own addresses do not begin with this magic. */
struct bwf_name {
	uint64_t magic;
	uint16_t port;	 /* network byte order; 0: none */
	uint16_t family; /* AF_INET, AF_INET6, or 0: any address of this host */
	uint32_t scope;
	uint8_t ip[16];
};
_Static_assert(sizeof(struct bwf_name) <= sizeof(struct bw_addr),
	       "a name takes an address's place");

struct bwf_name_head {
	uint64_t magic;
	uint64_t nonce; /* of the asker */
};

struct bwf_name_answer {
	struct bwf_name_head head; /* the question's */
	struct bw_addr addr;
};

struct bwf_name_question {
	struct bwf_name_head head;
	uint8_t padding[sizeof(struct bw_addr) + 8]; /* 0 */
};
_Static_assert(sizeof(struct bwf_name_question) > sizeof(struct bwf_name_answer),
	       "an answer is shorter than its question");

struct bwf_names {
	pthread_t thread;
	struct bw_ep *bw;    /* counts what is dropped; outlives this */
	int fd, stop_fd;     /* questions come to fd; stop_fd ends the thread */
	struct bw_addr addr; /* the answer */
};

bool bwf_name_is(const struct bw_addr *addr)
{
	struct bwf_name name;

	memcpy(&name, addr->bytes, sizeof(name));
	return name.magic == BWF_NAME_MAGIC;
}

bool bwf_name_has_port(const struct bw_addr *addr)
{
	struct bwf_name name;

	memcpy(&name, addr->bytes, sizeof(name));
	return name.magic == BWF_NAME_MAGIC && name.port;
}

int bwf_name_make(const char *node, const char *service, bool numeric, struct bw_addr *addr)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_DGRAM,
		.ai_flags = node ? (numeric ? AI_NUMERICHOST : 0) : AI_PASSIVE,
	};
	struct bwf_name name = {.magic = BWF_NAME_MAGIC};
	struct addrinfo *found;

	memset(addr, 0, sizeof(*addr));
	if (node || service) {
		if (getaddrinfo(node, service, &hints, &found))
			return -FI_ENODATA;
		if (found->ai_family == AF_INET) {
			const struct sockaddr_in *sin = (const void *)found->ai_addr;

			name.port = sin->sin_port;
			memcpy(name.ip, &sin->sin_addr, sizeof(sin->sin_addr));
		} else {
			const struct sockaddr_in6 *sin = (const void *)found->ai_addr;

			name.port = sin->sin6_port;
			name.scope = sin->sin6_scope_id;
			memcpy(name.ip, &sin->sin6_addr, sizeof(sin->sin6_addr));
		}
		name.family = node ? (uint16_t)found->ai_family : 0;
		freeaddrinfo(found);
	}
	memcpy(addr->bytes, &name, sizeof(name));
	return 0;
}

/* The socket address of a name; the length, 0 if it has none. */
static socklen_t bwf_name_sockaddr(const struct bwf_name *name, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *sin6 = (void *)to;
	struct sockaddr_in *sin = (void *)to;

	memset(to, 0, sizeof(*to));
	if (name->family == AF_INET6) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = name->port;
		sin6->sin6_scope_id = name->scope;
		memcpy(&sin6->sin6_addr, name->ip, sizeof(sin6->sin6_addr));
		return sizeof(*sin6);
	}
	sin->sin_family = AF_INET;
	sin->sin_port = name->port;
	if (name->family == AF_INET)
		memcpy(&sin->sin_addr, name->ip, sizeof(sin->sin_addr));
	else
		sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*sin);
}

/* Is the next datagram the answer to this question, not to another one or an error? */
static bool bwf_name_read(int fd, const struct bwf_name_question *question, struct bw_addr *addr)
{
	struct bwf_name_answer answer;

	if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC) != sizeof(answer) ||
	    memcmp(&answer.head, &question->head, sizeof(answer.head)) != 0)
		return false;
	*addr = answer.addr;
	return true;
}

/* Ask once and wait a moment for the answer, to this or an earlier try. */
static bool bwf_name_ask(int fd, const struct bwf_name_question *question, struct bw_addr *addr)
{
	uint64_t end_ns = bwf_now_ns() + BWF_NAME_TRY_NS, now_ns;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (send(fd, question, sizeof(*question), 0) < 0 && errno != ECONNREFUSED)
		p.fd = -1; /* no way there now: wait for the next try */
	while ((now_ns = bwf_now_ns()) < end_ns) {
		int ms = (int)((end_ns - now_ns) / 1000000 + 1);

		if (poll(&p, 1, ms) <= 0)
			continue;
		if (bwf_name_read(fd, question, addr))
			return true;
	}
	return false;
}

int bwf_name_resolve(struct bw_addr *addr)
{
	struct bwf_name_question question = {.head.magic = BWF_NAME_MAGIC};
	struct sockaddr_storage to;
	struct bwf_name name;
	socklen_t len;
	bool found = false;
	int fd;

	memcpy(&name, addr->bytes, sizeof(name));
	if (!name.port)
		return -FI_EHOSTUNREACH;
	len = bwf_name_sockaddr(&name, &to);
	fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* One nonce for all tries: an answer may be later than the next question. */
	if (getrandom(&question.head.nonce, sizeof(question.head.nonce), 0) ==
		    sizeof(question.head.nonce) &&
	    connect(fd, (struct sockaddr *)&to, len) == 0) {
		for (int i = 0; i < BWF_NAME_TRIES && !found; i++)
			found = bwf_name_ask(fd, &question, addr);
	}
	close(fd);
	return found ? 0 : -FI_EHOSTUNREACH;
}

/* Answer the datagram that has come, if it is a question. */
static void bwf_names_answer(struct bwf_names *names)
{
	struct bwf_name_answer answer = {.addr = names->addr};
	struct bwf_name_question question;
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(names->fd, &question, sizeof(question), MSG_DONTWAIT | MSG_TRUNC,
			     (struct sockaddr *)&from, &len);

	if (n < 0)
		return;
	if (n != sizeof(question) || question.head.magic != BWF_NAME_MAGIC) {
		bw_count_event(names->bw, BW_COUNT_NAME_DROPS);
		return;
	}
	answer.head = question.head;
	sendto(names->fd, &answer, sizeof(answer), 0, (struct sockaddr *)&from, len);
}

static void *bwf_names_run(void *arg)
{
	struct bwf_names *names = arg;
	struct pollfd p[2] = {{.fd = names->fd, .events = POLLIN},
			      {.fd = names->stop_fd, .events = POLLIN}};

	while (!(p[1].revents & POLLIN)) {
		if (poll(p, 2, -1) >= 0 && (p[0].revents & POLLIN))
			bwf_names_answer(names);
	}
	return NULL;
}

/* The socket that questions come to: an unbound name listens on every address of the host. */
static int bwf_names_socket(const struct bwf_name *name)
{
	struct sockaddr_storage at;
	struct sockaddr_in *sin = (void *)&at;
	socklen_t len = bwf_name_sockaddr(name, &at);
	int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	if (!name->family)
		sin->sin_addr.s_addr = htonl(INADDR_ANY);
	if (bind(fd, (struct sockaddr *)&at, len) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int bwf_names_open(struct bwf_names **out, const struct bw_addr *addr, struct bw_ep *bw)
{
	struct bwf_names *names = calloc(1, sizeof(*names));
	struct bwf_name name;
	int ret;

	if (!names)
		return -FI_ENOMEM;
	memcpy(&name, addr->bytes, sizeof(name));
	names->bw = bw;
	bw_ep_addr(bw, &names->addr);
	names->fd = bwf_names_socket(&name);
	names->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (names->fd < 0)
		ret = names->fd;
	else if (names->stop_fd < 0)
		ret = -errno;
	else
		ret = -pthread_create(&names->thread, NULL, bwf_names_run, names);
	if (ret) {
		if (names->fd >= 0)
			close(names->fd);
		if (names->stop_fd >= 0)
			close(names->stop_fd);
		free(names);
		return ret;
	}
	*out = names;
	return 0;
}

void bwf_names_close(struct bwf_names *names)
{
	if (!names)
		return;
	eventfd_write(names->stop_fd, 1);
	pthread_join(names->thread, NULL);
	bwf_names_leave(names);
}

void bwf_names_leave(struct bwf_names *names)
{
	if (!names)
		return;
	close(names->fd);
	close(names->stop_fd);
	free(names);
}
