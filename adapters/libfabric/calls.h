/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that the provider's files offer one another. "Locked" means: called with the
 * endpoint's lock (bw_ep_lock) held. Errors are negative FI_E* numbers, which equal errno's.
 */
#ifndef BWF_CALLS_H
#define BWF_CALLS_H

/* getinfo.c, fabric.c, domain.c */
int bwf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);
int bwf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context);
int bwf_domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **dom,
		    void *context);
int bwf_domain_open2(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **dom,
		     uint64_t flags, void *context);

/* Endpoints enter and leave their domain. */
int bwf_domain_attach(struct bwf_domain *dom, struct bwf_ep *ep);
void bwf_domain_detach(struct bwf_domain *dom, struct bwf_ep *ep);

/* none.c: slots of operation tables that refuse */
int bwf_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int bwf_no_control(struct fid *fid, int command, void *arg);
int bwf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int bwf_no_tostr(const struct fid *fid, char *buf, size_t len);
int bwf_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
#define BWF_FID_OPS(close_, bind_, control_)                                                       \
	{                                                                                          \
		.size = sizeof(struct fi_ops), .close = (close_), .bind = (bind_),                 \
		.control = (control_), .ops_open = bwf_no_ops_open, .tostr = bwf_no_tostr,         \
		.ops_set = bwf_no_ops_set,                                                         \
	}

/* mr.c */
extern struct fi_ops_mr bwf_mr_ops;
/* The n bytes that peers call (key, addr), if `access` allows all that is asked; else NULL. *mr is
 * set when it is not NULL. */
void *bwf_mr_find(struct bwf_domain *dom, uint64_t key, uint64_t addr, uint64_t n, uint64_t access,
		  struct bwf_mr **mr);
/* The same for a peer, which is given up once it has named BWF_GUESSES_MAX keys that nobody has.
 * Locked; peers may move in their table. */
void *bwf_mr_ask(struct bwf_ep *ep, bw_peer_no peer, uint64_t key, uint64_t addr, uint64_t n,
		 uint64_t access, struct bwf_mr **mr);

/* av.c */
int bwf_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **av, void *context);
/* Copies the address of fi_addr; false if there is none. */
bool bwf_av_get(struct bwf_av *av, fi_addr_t fi_addr, struct bw_addr *addr);
int bwf_av_attach(struct bwf_av *av, struct bwf_ep *ep);
void bwf_av_detach(struct bwf_av *av, struct bwf_ep *ep);

/* ep.c, ep_bind.c */
int bwf_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, void *context);
int bwf_ep_open2(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
		 void *context);
int bwf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
void bwf_ep_unbind_all(struct bwf_ep *ep);
int bwf_ep_control(struct fid *fid, int command, void *arg);
void bwf_ep_progress(struct bwf_ep *ep);
int bwf_ep_alias(struct bwf_face *of, const struct fi_alias *alias);
extern struct fi_ops_ep bwf_ep_ops;
extern struct fi_ops_cm bwf_ep_cm_ops;
extern struct fi_ops_msg bwf_msg_ops;
extern struct fi_ops_tagged bwf_tagged_ops;
extern struct fi_ops_rma bwf_rma_ops;
extern struct fi_ops_atomic bwf_atomic_ops;
extern struct fi_ops_collective bwf_collective_ops;
extern const struct bw_handlers bwf_handlers;

/* awaits.c: for `beowire status`, locked */
void bwf_awaits(void *arg, struct bw_program *told);

/* peer.c, all locked */
/* The slot of a peer, made if need be; NULL without memory. */
struct bwf_peer *bwf_peer_get(struct bwf_ep *ep, bw_peer_no peer);
/* fi_addr_t to bw_peer_no for the first use of an address. */
int bwf_peer_resolve(struct bwf_ep *ep, fi_addr_t addr, bw_peer_no *peer);
/* The fi_addr_t of a peer, FI_ADDR_NOTAVAIL if its address was not inserted. */
fi_addr_t bwf_peer_source(struct bwf_ep *ep, bw_peer_no peer);
void bwf_peer_forget_addr(struct bwf_ep *ep, fi_addr_t addr);
void bwf_peer_down(void *arg, bw_peer_no peer, int status);
/* Is it in the address vector, or anything of it under way or unread? */
bool bwf_peer_needed(void *arg, bw_peer_no peer);
/* Look up all addresses that were inserted since, and end receives from anybody if the last peer is
 * found to be gone. Outside libbeowire. */
void bwf_peer_seek(struct bwf_ep *ep);
/* Give up a live peer that went beyond its bounds; `why` ends a sentence about it. What is under
 * way in libbeowire ends as usual; answers of it are not waited for, and all else ends with
 * FI_ECONNABORTED. */
void bwf_peer_refuse(struct bwf_ep *ep, bw_peer_no peer, const char *why);
/* Why nothing can be done with it: a negative error, or 0. */
static inline int bwf_peer_gone(const struct bwf_peer *peer)
{
	return peer->refused ? -FI_ECONNABORTED : peer->down;
}
/* Why no message can come for a receive from peer (or BWF_MATCH_ANY); 0: one may come. */
int bwf_peer_hopeless(struct bwf_ep *ep, bw_peer_no peer);

static inline int bwf_peer_of(struct bwf_ep *ep, fi_addr_t addr, bw_peer_no *peer)
{
	if (addr < ep->peer_of_count && ep->peer_of[addr] != BW_PEER_NONE) {
		*peer = ep->peer_of[addr];
		return 0;
	}
	return bwf_peer_resolve(ep, addr, peer);
}

/* The same for something to be sent there, which fails if the peer is gone. */
static inline int bwf_peer_to(struct bwf_ep *ep, fi_addr_t addr, bw_peer_no *peer)
{
	int ret = bwf_peer_of(ep, addr, peer);

	return ret ? ret : bwf_peer_gone(&ep->peer[*peer]);
}

/* wait.c */
void bwf_port_init(struct bwf_port *port, enum fi_wait_obj wait_obj);
void bwf_port_close(struct bwf_port *port);
int bwf_port_add(struct bwf_port *port, struct bwf_ep *ep);
void bwf_port_del(struct bwf_port *port, struct bwf_ep *ep);
/* Drive the endpoints, unless another thread is doing so. */
void bwf_port_progress(struct bwf_port *port);
/* Sleep until something may have happened (0) or until `deadline_ns` of bwf_now_ns(); -FI_EINTR.
 * With the owner's lock held the caller has found nothing, counted itself among the sleepers and
 * read `wakes`. */
int bwf_port_sleep(struct bwf_port *port, uint32_t wakes, uint64_t deadline_ns);
/* Wake sleepers and armed descriptors. */
void bwf_port_wake(struct bwf_port *port);
/* The descriptor to poll, made if need be; negative error. */
int bwf_port_fd(struct bwf_port *port);
/* Before a program polls the descriptor: -FI_EAGAIN if an endpoint has work already. */
int bwf_port_arm(struct bwf_port *port);
/* Whoever is about to sleep takes back what woke others, who may not have looked yet, and has found
 * that something came: they are to look. */
void bwf_port_pass_on(struct bwf_port *port);
int bwf_port_getwait(struct bwf_port *port, int command, void *arg);
uint64_t bwf_now_ns(void);
uint64_t bwf_deadline_ns(int timeout_ms);

/* Called by a producer with the owner's lock held, after it has added something. */
static inline void bwf_port_notify(struct bwf_port *port)
{
	if (__builtin_expect(atomic_load_explicit(&port->sleepers, memory_order_relaxed) ||
				     atomic_load_explicit(&port->armed, memory_order_relaxed),
			     false))
		bwf_port_wake(port);
}

/* cq.c, cntr.c, eq.c, poll.c */
int bwf_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
void bwf_cq_push(struct bwf_cq *cq, const struct bwf_cqe *e);
bool bwf_cq_ready(struct bwf_cq *cq);
/* Are there so many entries, with what is under way, that new operations have to wait until the
 * program reads some? */
bool bwf_cq_full(const struct bwf_cq *cq, uint64_t under_way);
/* Likewise for what peers put there without an operation of the program's: they are refused. */
bool bwf_cq_overfull(const struct bwf_cq *cq);
int bwf_cq_trywait(struct bwf_cq *cq);
int bwf_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);
void bwf_cntr_count(struct bwf_cntr *cntr, int status);
int bwf_cntr_trywait(struct bwf_cntr *cntr);
int bwf_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);
int bwf_eq_trywait(struct bwf_eq *eq);
void bwf_eq_post(struct bwf_eq *eq, uint32_t event, const struct fi_eq_entry *entry);
int bwf_poll_open(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **poll);
int bwf_wait_open(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **wait);

/* rx.c, peek.c, unexpected.c */
struct bwf_rx_args {
	const struct iovec *iov;
	size_t n;
	fi_addr_t addr;
	uint64_t tag, ignore;
	void *context;
	uint64_t flags;
};
ssize_t bwf_rx_post(struct bwf_ep *ep, const struct bwf_rx_args *a, bool tagged);
ssize_t bwf_rx_peek(struct bwf_ep *ep, const struct bwf_rx_args *a);
ssize_t bwf_rx_claimed(struct bwf_ep *ep, const struct bwf_rx_args *a);
/* From here on locked. The source that a receive names, or BWF_MATCH_ANY. */
int bwf_rx_source(struct bwf_ep *ep, const struct bwf_rx_args *a, uint32_t *peer);
/* Fill in a new receive that is not posted. */
void bwf_rx_set(struct bwf_ep *ep, struct bwf_rx *rx, const struct bwf_rx_args *a, bool tagged);
void bwf_rx_message(struct bwf_ep *ep, const struct bw_message *m);
/* The receive that a message will match: where its bytes go, and *op, whose end is told when all
 * are there. NULL: none takes it as it comes. Matched, it cannot be cancelled any more. */
void *bwf_rx_place(struct bwf_ep *ep, const struct bw_message *m, void **op);
/* Cancel the receive with this context: 0, or -FI_ENOENT. */
int bwf_rx_cancel(struct bwf_ep *ep, void *context);
/* End the posted receives from `peer` (or of any source) with a positive error. */
void bwf_rx_fail(struct bwf_ep *ep, uint32_t peer, int err);
void bwf_rx_free_all(struct bwf_ep *ep);
struct bwf_rx *bwf_rx_new(struct bwf_ep *ep);
void bwf_rx_put(struct bwf_ep *ep, struct bwf_rx *rx);
/* Hand a message to a receive: copy it, or start to fetch it. */
void bwf_rx_deliver(struct bwf_ep *ep, struct bwf_rx *rx, const struct bw_message *m);
/* Its data are there, or status says why not: copy them, and end it. */
void bwf_rx_fill(struct bwf_ep *ep, struct bwf_rx *rx, const void *data, size_t len, int status);

/* Give a receive a message out of its queue of unexpected ones. */
void bwf_rx_take_stored(struct bwf_ep *ep, struct bwf_rx *rx, struct bwf_arrived *arrived);

/* held.c. Locked: does a message for this receive wait until the program reads completions? Give
 * receives what waited, if there is room. */
bool bwf_held_keep(struct bwf_ep *ep, const struct bwf_rx *rx);
void bwf_held_resume(struct bwf_ep *ep);
/* Would that give them something? Not locked. */
bool bwf_held_due(struct bwf_ep *ep);

/* Forget a message that is in no queue any more; the sender of a long one is released. */
void bwf_rx_discard(struct bwf_ep *ep, struct bwf_unexpected *u);
struct bwf_unexpected *bwf_unexpected_new(struct bwf_ep *ep, const struct bw_message *m);
void bwf_unexpected_put(struct bwf_ep *ep, struct bwf_unexpected *u);
void bwf_unexpected_free_all(struct bwf_ep *ep);
void bwf_unexpected_message(const struct bwf_unexpected *u, struct bw_message *m);
void bwf_unexpected_init(struct bwf_ep *ep);
/* May the sender of this message have one more waiting? */
bool bwf_unexpected_admits(const struct bwf_ep *ep, const struct bw_message *m);
/* Room for so many bytes of a message that is fetched early; false if there is none. */
bool bwf_unexpected_reserve(struct bwf_ep *ep, size_t bytes);
void bwf_unexpected_release(struct bwf_ep *ep, size_t bytes);

/* stranger.c, all locked */
/* Once the limit of unexpected messages is known. */
void bwf_stranger_init(struct bwf_ep *ep);
/* A peer is about to be in the address vector, or no longer: what it has left unread counts among
 * strangers' no more, or again. */
void bwf_stranger_named(struct bwf_ep *ep, bw_peer_no peer);
void bwf_stranger_unnamed(struct bwf_ep *ep, bw_peer_no peer);
/* It is about to be given up. */
void bwf_stranger_refused(struct bwf_ep *ep, bw_peer_no peer);
/* Is what is held for it part of bwf_ep.strangers? */
bool bwf_stranger_counts(const struct bwf_ep *ep, bw_peer_no peer);
/* May one more request of this peer wait for its data, or is another one's to make room? */
bool bwf_stranger_may_ask(struct bwf_ep *ep, bw_peer_no peer);
/* So many calls (1, or -1: one less) are kept for what this peer asked, with so many bytes. */
void bwf_stranger_keeps(struct bwf_ep *ep, bw_peer_no peer, int calls, uint64_t bytes);
/* May one more be? If all strangers have too many, who has most of them is given up: false if that
 * is this one. */
bool bwf_stranger_may_keep(struct bwf_ep *ep, bw_peer_no peer, uint64_t bytes);
/* Why. */
#define BWF_TODO_TOO_MANY "asks for more than it takes answers to"
/* A peer that is in no vector is gone, and did not say goodbye: nobody reads what it left. */
void bwf_stranger_died(struct bwf_ep *ep, bw_peer_no peer);
/* Has a message of this peer lain unread for so long that it must not keep others out? */
bool bwf_stranger_overdue(const struct bwf_ep *ep, bw_peer_no peer);
/* A peer that was not needed has made room for another one. */
void bwf_stranger_evicted(struct bwf_ep *ep, bw_peer_no peer);
/* May a peer that has named no key so far name one? Not if it is in no vector, and all such have
 * named too many that nobody has. */
bool bwf_stranger_may_guess(struct bwf_ep *ep, bw_peer_no peer);
/* A peer, a stranger or not, has named a key that nobody has. */
void bwf_stranger_guessed(struct bwf_ep *ep, bw_peer_no peer);
/* Strangers' unread messages are more than may be. Outside libbeowire; messages may be dropped. */
void bwf_stranger_make_room(struct bwf_ep *ep);

/* early.c, all locked */
/* An unexpected message has come: fetch it now if that is worth it. */
void bwf_early_begin(struct bwf_ep *ep, const struct bw_message *m);
/* A receive takes this message: true if it gets its data here, now or later. */
bool bwf_early_take(struct bwf_ep *ep, struct bwf_rx *rx, const struct bw_message *m);
/* The message is discarded. */
void bwf_early_drop(struct bwf_ep *ep, uint32_t peer, const struct bw_rndv *rndv);
void bwf_early_free_all(struct bwf_ep *ep);

/* op.c, all locked */
struct bwf_op *bwf_op_new(struct bwf_ep *ep, bw_peer_no peer);
/* From now on it waits for an answer of this code, which brings its results; false if too many do.
 */
bool bwf_op_await(struct bwf_ep *ep, struct bwf_op *op, uint8_t code);
/* Wait no longer for a peer's answers. */
void bwf_op_refuse_peer(struct bwf_ep *ep, bw_peer_no peer, int status);
/* One part ended; the last one finishes the operation. */
void bwf_op_part(struct bwf_ep *ep, struct bwf_op *op, int status);
void bwf_op_put(struct bwf_ep *ep, struct bwf_op *op);
uint64_t bwf_op_token(const struct bwf_op *op);
/* The operation that an answer of this code from this peer ends: found once for each. */
struct bwf_op *bwf_op_answered(struct bwf_ep *ep, bw_peer_no peer, uint8_t code, uint64_t token);
void bwf_op_fail_peer(struct bwf_ep *ep, bw_peer_no peer, int status);
int bwf_op_cancel(struct bwf_ep *ep, void *context);
/* Does any operation wait for its target's answer? */
bool bwf_op_awaiting(struct bwf_ep *ep);
void bwf_op_free_all(struct bwf_ep *ep);

/* tx.c */
struct bwf_tx_args {
	const struct iovec *iov;
	size_t n;
	fi_addr_t addr;
	uint64_t tag, data;
	void *context;
	uint64_t flags;
	uint8_t code;
};
ssize_t bwf_tx_send(struct bwf_face *face, const struct bwf_tx_args *a);
ssize_t bwf_tx_inject(struct bwf_face *face, const void *buf, size_t len, fi_addr_t addr,
		      uint64_t tag, uint64_t data, uint8_t code);
/* Is a fence on operations to this peer still closed? Locked. */
static inline bool bwf_tx_fenced(struct bwf_ep *ep, bw_peer_no peer, uint64_t flags)
{
	return (flags & FI_FENCE) && peer < ep->peer_count && ep->peer[peer].busy;
}
/* Report the end of an operation of the initiator. */
void bwf_tx_report(struct bwf_ep *ep, void *context, uint64_t flags, int status);

/* todo.c, all locked */
void bwf_todo_pull(struct bwf_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv, void *buf,
		   uint64_t len, struct bwf_done *done);
void bwf_todo_read(struct bwf_ep *ep, bw_peer_no peer, uint64_t key, uint64_t off, void *buf,
		   uint64_t len, struct bwf_done *done);
void bwf_todo_send(struct bwf_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, void *buf,
		   uint64_t len, struct bwf_done *done);
/* Give a peer up soon, since it cannot be done now: as bwf_peer_refuse(). */
void bwf_todo_refuse(struct bwf_ep *ep, bw_peer_no peer, const char *why);
void bwf_todo_retry(struct bwf_ep *ep);
void bwf_todo_fail_peer(struct bwf_ep *ep, bw_peer_no peer, int status);
void bwf_todo_free_all(struct bwf_ep *ep);
/* Release the sender of a message that has no place here. This and the following charge the peer
 * with what they keep: who has too much kept is given up. */
void bwf_todo_discard(struct bwf_ep *ep, bw_peer_no peer, const struct bw_rndv *rndv);
/* A short message that answers a request: never fails towards the caller. */
void bwf_todo_answer(struct bwf_ep *ep, bw_peer_no peer, uint8_t code, uint64_t tag, uint64_t imm,
		     const void *buf, uint64_t len);

/* rma.c, atomic.c (initiator), target.c (target) */
void bwf_target_message(struct bwf_ep *ep, const struct bw_message *m);
void *bwf_target_region(void *arg, bw_peer_no peer, uint64_t key, uint64_t off, uint64_t n);
void bwf_target_fail_peer(struct bwf_ep *ep, bw_peer_no peer);
void bwf_target_free_all(struct bwf_ep *ep);
/* Are peers reading or writing this region through this endpoint right now? */
bool bwf_target_uses(struct bwf_ep *ep, const struct bwf_mr *mr);
/* Bytes of long writes into it that are being fetched; and give these fetches up. */
uint64_t bwf_target_placing(const struct bwf_ep *ep, const struct bwf_mr *mr);
void bwf_target_give_up(struct bwf_ep *ep, const struct bwf_mr *mr);
void bwf_atomic_target(struct bwf_ep *ep, const struct bw_message *m);
/* Apply one atomic operation (atomic_ops.c): count elements of `type` at dst become op(dst, src),
 * or for comparing ones op(dst, cmp, src); what was there goes to `old` unless NULL. */
void bwf_atomic_apply(enum fi_datatype type, enum fi_op op, void *dst, const void *src,
		      const void *cmp, void *old, size_t count);
/* Bytes of one element; 0 if the operation is not offered for this type and kind. */
size_t bwf_atomic_size(enum fi_datatype type, enum fi_op op, int kind);
int bwf_atomic_query(struct fid_domain *fid, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags);

/* log.c */
enum bwf_log_level { BWF_LOG_ERROR, BWF_LOG_WARN, BWF_LOG_INFO, BWF_LOG_DEBUG };
void bwf_log(enum bwf_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Says at level `warn` that a peer "is ..." and leaves the line in BEOWIRE_STATS, in a file named
 * after the endpoint that tells and the peer (hashes of their addresses). */
void bwf_log_loss(uint64_t teller, uint64_t key, const char *peer, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* True for the first process of this node (network namespace) that asks for this key. */
bool bwf_log_first(uint64_t key);
/* Text of an error number, in buf if there is one. */
const char *bwf_strerror(int prov_errno, char *buf, size_t len);

#endif
