/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket of the control protocol and its clients. All of it runs in the main thread. */
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define EM_ANSWER_TIMEOUT_S 2 /* that a client may leave an answer unread */

static int em_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/* Does anyone listen there? */
static bool em_control_alive(const struct sockaddr_un *address)
{
	int fd = em_socket();
	bool alive = fd >= 0 && !connect(fd, (const struct sockaddr *)address, sizeof(*address));

	if (fd >= 0)
		close(fd);
	return alive;
}

/* Make way at the path; only a socket that its listener left behind is removed. */
static int em_control_clear(const struct sockaddr_un *address, char *why)
{
	struct stat s;

	if (lstat(address->sun_path, &s))
		return 0;
	if (!S_ISSOCK(s.st_mode)) {
		snprintf(why, EM_WHY_MAX,
			 "--control %.100s is a file that is no socket; name "
			 "another path",
			 address->sun_path);
		return -EEXIST;
	}
	if (em_control_alive(address)) {
		snprintf(why, EM_WHY_MAX,
			 "--control %.100s: another program listens there; name another path, or "
			 "stop it",
			 address->sun_path);
		return -EADDRINUSE;
	}
	unlink(address->sun_path);
	return 0;
}

int em_control_open(struct em_control *c, const char *path, char why[EM_WHY_MAX])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int error, i;

	memset(c, 0, sizeof(*c));
	c->fd = -1;
	for (i = 0; i < EM_CLIENTS; i++)
		c->client[i].fd = -1;
	if (!path)
		return 0;
	if (!*path || strlen(path) >= sizeof(address.sun_path)) {
		snprintf(why, EM_WHY_MAX, "--control: a path of 1 to %zu bytes is needed",
			 sizeof(address.sun_path) - 1);
		return -EINVAL;
	}
	strcpy(address.sun_path, path);
	error = em_control_clear(&address, why);
	if (error)
		return error;
	c->fd = em_socket();
	/* for the owner only: whoever can write there rules the link */
	mask = umask(0177);
	error = c->fd < 0 || bind(c->fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	umask(mask);
	if (!error) {
		c->path = path;
		error = listen(c->fd, EM_CLIENTS) ? -errno : 0;
	}
	if (error) {
		snprintf(why, EM_WHY_MAX,
			 "--control %.100s: cannot listen there: %s; name a path in a writable "
			 "folder",
			 path, strerror(-error));
		em_control_close(c);
	}
	return error;
}

void em_control_close(struct em_control *c)
{
	int i;

	for (i = 0; i < EM_CLIENTS; i++)
		if (c->client[i].fd >= 0)
			close(c->client[i].fd);
	if (c->fd >= 0)
		close(c->fd);
	if (c->path)
		unlink(c->path);
	c->path = NULL;
	c->fd = -1;
}

int em_control_poll(const struct em_control *c, struct pollfd *fds)
{
	int n = 0, i;

	if (c->fd < 0)
		return 0;
	fds[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
	for (i = 0; i < EM_CLIENTS; i++)
		if (c->client[i].fd >= 0)
			fds[n++] = (struct pollfd){.fd = c->client[i].fd, .events = POLLIN};
	return n;
}

static void em_client_end(struct em_client *k)
{
	close(k->fd);
	k->fd = -1;
	k->n = 0;
}

/* False if the client does not take it. */
static bool em_client_tell(struct em_client *k, const char *text, size_t n)
{
	while (n) {
		ssize_t sent = send(k->fd, text, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		text += sent;
		n -= (size_t)sent;
	}
	return true;
}

static bool em_control_carry_out(struct em_link *l, char *line, FILE *answer)
{
	struct em_settings set[EM_DIRECTIONS];
	char why[EM_WHY_MAX];

	memcpy(set, l->set, sizeof(set));
	switch (em_request_read(line, set, why)) {
	case EM_REQUEST_SET:
		em_link_set(l, set);
		em_report_answer(answer, NULL);
		return false;
	case EM_REQUEST_STATS:
		em_link_tell(l);
		em_report_json(answer, l);
		return false;
	case EM_REQUEST_RESET:
		em_link_reset(l);
		em_report_answer(answer, NULL);
		return false;
	case EM_REQUEST_STOP:
		em_report_answer(answer, NULL);
		return true;
	default:
		em_report_answer(answer, why);
		return false;
	}
}

/* One line of a client; true: the run is to stop. */
static bool em_client_line(struct em_client *k, struct em_link *l, char *line)
{
	char *text = NULL;
	size_t n = 0;
	FILE *answer = open_memstream(&text, &n);
	bool stop = false;

	if (answer) {
		stop = em_control_carry_out(l, line, answer);
		fclose(answer);
	}
	if (!text || !em_client_tell(k, text, n))
		em_client_end(k);
	free(text);
	return stop;
}

/* What has come of a client's lines; true: the run is to stop. */
static bool em_client_serve(struct em_client *k, struct em_link *l)
{
	ssize_t n = recv(k->fd, k->line + k->n, sizeof(k->line) - 1 - k->n, MSG_DONTWAIT);
	bool stop = false;
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		em_client_end(k);
		return false;
	}
	k->n += (size_t)n;
	while (k->fd >= 0 && !stop && (end = memchr(k->line, '\n', k->n))) {
		size_t used = (size_t)(end - k->line) + 1;

		*end = 0;
		stop = em_client_line(k, l, k->line);
		if (k->fd >= 0) {
			k->n -= used;
			memmove(k->line, k->line + used, k->n);
		}
	}
	if (k->fd >= 0 && k->n == sizeof(k->line) - 1) {
		char line[] = "line-too-long";

		em_client_line(k, l, line);
		if (k->fd >= 0)
			em_client_end(k);
	}
	return stop;
}

static void em_control_accept(struct em_control *c)
{
	struct timeval patience = {.tv_sec = EM_ANSWER_TIMEOUT_S};
	int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC), i;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	for (i = 0; i < EM_CLIENTS; i++) {
		if (c->client[i].fd >= 0)
			continue;
		c->client[i].fd = fd;
		c->client[i].n = 0;
		return;
	}
	close(fd);
}

bool em_control_serve(struct em_control *c, struct em_link *l)
{
	struct pollfd fds[EM_CLIENTS + 1];
	int n = em_control_poll(c, fds), i, k;
	bool stop = false;

	if (!n || poll(fds, (nfds_t)n, 0) <= 0)
		return false;
	for (i = 1; i < n; i++)
		for (k = 0; k < EM_CLIENTS && fds[i].revents; k++)
			if (c->client[k].fd == fds[i].fd && em_client_serve(&c->client[k], l))
				stop = true;
	if (fds[0].revents)
		em_control_accept(c);
	return stop;
}
