/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fake libbeowire; see fake_beowire.h. */
#include "fake_beowire.h"

#include <errno.h>
#include <stdlib.h>

#include "codes.h"
#include "count.h"
#include "log.h"
#include "link/iface.h"
#include "open.h"

enum fake_kind { FAKE_SEND, FAKE_FETCH };

struct fake_op {
	enum fake_kind kind;
	bw_peer_no peer;
	void *op;
	uint8_t *buf;
	uint64_t len;
	bool cancelled;
};

struct bw_ep {
	const struct bw_handlers *handlers;
	void *arg;
	unsigned mood;
	int down[FAKE_PEERS];
	uint64_t token[FAKE_TOKENS];
	uint32_t tokens;
	struct fake_op op[FAKE_OPS];
	uint32_t ops;
	uint32_t waits; /* in a row without anything to end */
};

struct bw_ep *fake_ep;
static uint64_t sink; /* so that reads of what is sent are not left out */

void bw_count_event(struct bw_ep *ep, enum bw_count what)
{
}

void bw_log_once(enum bw_log_level level, const char *what, const char *format, ...)
{
}

void fake_mood(unsigned mood)
{
	fake_ep->mood = mood;
}

bool fake_down(bw_peer_no peer)
{
	return fake_ep->down[peer];
}

uint64_t fake_token(unsigned which)
{
	return fake_ep->token[which % FAKE_TOKENS];
}

void fake_deliver(const struct bw_message *m)
{
	struct bw_message copy = *m;
	void *data = NULL;

	if (fake_ep->down[m->peer])
		return;
	if (!m->envelope) {
		data = malloc(m->len + !m->len);
		memcpy(data, m->data, m->len);
	}
	copy.data = data;
	fake_ep->handlers->message(fake_ep->arg, &copy);
	free(data);
}

static void read_all(const uint8_t *bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink += bytes[i];
}

bool fake_uses(const void *buf)
{
	for (uint32_t i = 0; i < fake_ep->ops; i++)
		if (buf && fake_ep->op[i].buf == buf)
			return true;
	return false;
}

static void end_one(uint32_t i, int status)
{
	struct fake_op op = fake_ep->op[i];

	memmove(&fake_ep->op[i], &fake_ep->op[i + 1], (--fake_ep->ops - i) * sizeof(op));
	if (op.cancelled)
		status = -ECANCELED;
	if (op.kind == FAKE_SEND) {
		read_all(op.buf, op.len);
		fake_ep->handlers->sent(fake_ep->arg, op.op, status);
		return;
	}
	if (op.len)
		memset(op.buf, 0x5A, status ? op.len / 2 : op.len);
	fake_ep->handlers->pulled(fake_ep->arg, op.op, status, status ? 0 : op.len);
}

void fake_end(unsigned which, int status)
{
	if (fake_ep->ops)
		end_one(which % fake_ep->ops, status);
}

void fake_end_all(int status)
{
	while (fake_ep->ops)
		end_one(0, status);
}

void fake_lose(bw_peer_no peer, int status)
{
	uint32_t i = 0;

	if (fake_ep->down[peer])
		return;
	fake_ep->down[peer] = status;
	while (i < fake_ep->ops) {
		if (fake_ep->op[i].peer == peer) {
			end_one(i, status);
			i = 0; /* the handler may have changed anything */
		} else {
			i++;
		}
	}
	fake_ep->handlers->peer_down(fake_ep->arg, peer, status);
}

/* 0 if a call goes on, else what it returns. */
static int begin(struct bw_ep *ep, bw_peer_no peer)
{
	if (peer >= FAKE_PEERS)
		fuzz_bad("a call names a peer that does not exist");
	if (ep->down[peer])
		return ep->down[peer];
	if (ep->mood & FAKE_REFUSE)
		return -EINVAL;
	return ep->mood & FAKE_FULL || ep->ops == FAKE_OPS ? -EAGAIN : 0;
}

static void remember(struct bw_ep *ep, enum fake_kind kind, bw_peer_no peer, const void *buf,
		     uint64_t len, void *op)
{
	ep->op[ep->ops++] = (struct fake_op){kind, peer, op, (uint8_t *)(uintptr_t)buf, len, false};
}

int bw_send(struct bw_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
	    const void *buf, uint64_t len, unsigned flags, void *op)
{
	int error = begin(ep, peer);

	if (error)
		return error;
	if (code > BW_CODE_MAX)
		fuzz_bad("a code beyond the limit");
	read_all(buf, len);
	switch (code & BWF_CODE_MASK) {
	case BWF_CODE_WRITE:
	case BWF_CODE_WRITE_LONG:
	case BWF_CODE_ATOMIC:
		memcpy(&ep->token[ep->tokens++ % FAKE_TOKENS], buf, sizeof(ep->token[0]));
	}
	if (!op || (flags & BW_SEND_EAGER) || !(ep->mood & FAKE_LONG) ||
	    bw_send_copies(ep, peer, len))
		return 1;
	remember(ep, FAKE_SEND, peer, buf, len, op);
	return 0;
}

static int fetch(struct bw_ep *ep, bw_peer_no peer, void *buf, uint64_t len, void *op)
{
	int error = begin(ep, peer);

	if (!error && op)
		remember(ep, FAKE_FETCH, peer, buf, len, op);
	return error;
}

int bw_pull(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf, uint64_t len,
	    void *op)
{
	return fetch(ep, peer, buf, len, op);
}

int bw_pull_early(struct bw_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		  uint64_t len, void *op)
{
	if (!(ep->mood & FAKE_EARLY))
		return -EOPNOTSUPP;
	return buf ? fetch(ep, peer, buf, len, op) : 0;
}

int bw_pull_cancel(struct bw_ep *ep, bw_peer_no peer, void *op)
{
	return -ENOENT;
}

int bw_read(struct bw_ep *ep, bw_peer_no peer, uint64_t key, uint64_t off, void *buf, uint64_t len,
	    void *op)
{
	return fetch(ep, peer, buf, len, op);
}

int bw_send_cancel(struct bw_ep *ep, void *op)
{
	for (uint32_t i = 0; i < ep->ops; i++)
		if (ep->op[i].op == op && ep->op[i].kind == FAKE_SEND && !ep->op[i].cancelled) {
			ep->op[i].cancelled = true;
			return 0;
		}
	return -ENOENT;
}

bool bw_send_copies(struct bw_ep *ep, bw_peer_no peer, uint64_t len)
{
	return ep->mood & FAKE_COPIES && len > 8192;
}

bool bw_ep_serving(struct bw_ep *ep, uint64_t key, const void *buf, uint64_t len)
{
	return false;
}

int bw_ep_forbid(struct bw_ep *ep, uint64_t key)
{
	return 0;
}

/* Who waits waits for something under way. */
int bw_wait(struct bw_ep *ep, uint64_t timeout_ns)
{
	ep->mood &= ~(unsigned)(FAKE_FULL | FAKE_REFUSE);
	ep->waits = ep->ops ? 0 : ep->waits + 1;
	if (ep->waits > 100)
		fuzz_bad("waits for something that nobody can end");
	fake_end_all(0);
	return 1;
}

int bw_ep_open_by(struct bw_ep **ep, const struct bw_ep_attr *attr, const char *interface,
		  const char **why)
{
	fake_ep = calloc(1, sizeof(*fake_ep));
	fake_ep->handlers = attr->handlers;
	fake_ep->arg = attr->arg;
	*ep = fake_ep;
	return 0;
}

/* There are no settings, and no interfaces. */
int bw_env_read(struct bw_env *env, const char **why)
{
	return -EINVAL;
}

int bw_iface_list(struct bw_iface iface[BW_IFACE_MAX])
{
	return 0;
}

int bw_iface_choose_all(const struct bw_env *env, struct bw_iface *chosen, int most,
			const char **why)
{
	return -ENODEV;
}

int bw_iface_choose_ip(const struct bw_env *env, const struct bw_iface *preferred,
		       struct bw_iface *chosen, union bw_name *name, const char **why)
{
	return -ENODEV;
}

void bw_ep_close(struct bw_ep *ep, uint64_t timeout_ns)
{
	free(ep);
	fake_ep = NULL;
}

void bw_ep_addr(struct bw_ep *ep, struct bw_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
}

/* The first byte of an address is the peer's number; the endpoint itself has none. */
int bw_peer_find(struct bw_ep *ep, const struct bw_addr *addr, bw_peer_no *peer)
{
	*peer = addr->bytes[0];
	return *peer && *peer < FAKE_PEERS ? 0 : -EINVAL;
}

/* A peer whose address nobody knows is not mourned in public. */
int bw_peer_addr(struct bw_ep *ep, bw_peer_no peer, struct bw_addr *addr)
{
	return -EINVAL;
}

const char *bw_peer_describe(struct bw_ep *ep, bw_peer_no peer)
{
	return "somebody";
}

uint32_t bw_eager_max(struct bw_ep *ep, bw_peer_no peer)
{
	return 8192;
}

int bw_progress(struct bw_ep *ep)
{
	return 0;
}

int bw_ep_arm(struct bw_ep *ep, uint64_t *timeout_ns)
{
	return -EAGAIN;
}

int bw_ep_fd(struct bw_ep *ep)
{
	return -1;
}

void bw_ep_lock(struct bw_ep *ep)
{
}
void bw_ep_unlock(struct bw_ep *ep)
{
}
void bw_ep_wake(struct bw_ep *ep)
{
}
void bw_ep_pressure(struct bw_ep *ep, bool on)
{
}
void bw_peer_watch(struct bw_ep *ep, bw_peer_no peer, bool on)
{
}
