// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a library that moves the caches of inference engines (NIXL) does with libfabric, between two
 * processes: a device is found, and opened by its domain's name; writes with 32 bits of data tell
 * the target which transfer they are of, several before one without FI_MORE; notifications are
 * messages with such data into receives that are posted in advance; reads; and the endpoint is
 * closed before its queue, its address vector and its memory.
 */
#include "pair.h"
#include "sides.h"

enum {
	ADDRESS = 56,
	MAIL = 8192, /* bytes of a notification, at most */
	RECEIVES = 64,
	BATCH = 16, /* writes of which the last has no FI_MORE */
	READ_AT_ONCE = 16,
	NOTE = 2, /* kinds of messages, the lowest bits of their data */
	TRANSFER = 4,
	BLOCKS = 96,
	BLOCK = 64 << 10,
	LARGE = 4 << 20
};

struct rail {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *mail_mr;
	char *mail; /* RECEIVES to receive into, one to send from */
	struct fi_context context[RECEIVES];
	fi_addr_t self, peer;
	uint64_t written, read, sent; /* completions of one's own */
	uint64_t told, told_sum;      /* transfers that the other side has written here */
	uint64_t notes;
};

/* What the other side is to know of memory. */
struct place {
	uint64_t addr, key;
};

static uint64_t data_of(unsigned int kind, unsigned int transfer)
{
	return kind | (uint64_t)transfer << 12;
}

static struct fi_info *devices(uint64_t caps, int mr_mode, size_t key_size, const char *domain,
			       int wanted)
{
	struct fi_info *hints = fi_allocinfo(), *found = NULL;
	uint32_t version = FI_VERSION(1, 18);

	if (FI_VERSION_LT(fi_version(), version))
		version = fi_version();
	SIDE_TRUE(hints);
	hints->caps = caps | FI_MSG | FI_RMA | FI_LOCAL_COMM | FI_REMOTE_COMM;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->domain_attr->mr_key_size = key_size;
	if (domain) {
		hints->domain_attr->name = strdup(domain);
		hints->domain_attr->threading = FI_THREAD_COMPLETION;
	}
	SIDE_IS(fi_getinfo(version, NULL, NULL, 0, hints, &found), wanted);
	fi_freeinfo(hints);
	return found;
}

static void receive_post(struct rail *r, int i)
{
	struct iovec iov = {.iov_base = r->mail + (size_t)i * MAIL, .iov_len = MAIL};
	void *desc = fi_mr_desc(r->mail_mr);
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = &r->context[i],
	};

	SIDE_IS(fi_recvmsg(r->ep, &msg, 0), 0);
}

static void rail_open(struct rail *r)
{
	const int modes =
		FI_MR_LOCAL | FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE, .size = 12288};
	/* every mode but the two of old */
	struct fi_info *all = devices(0, ~3, 0, NULL, 0);
	struct fi_av_attr av = {0};

	memset(r, 0, sizeof(*r));
	devices(FI_HMEM, modes, 2, all->domain_attr->name, -FI_ENODATA);
	r->info = devices(0, modes, 2, all->domain_attr->name, 0);
	SIDE_IS(strcmp(r->info->domain_attr->name, all->domain_attr->name), 0);
	fi_freeinfo(all);
	SIDE_IS(fi_fabric(r->info->fabric_attr, &r->fabric, NULL), 0);
	SIDE_IS(fi_domain(r->fabric, r->info, &r->domain, NULL), 0);
	SIDE_IS(fi_cq_open(r->domain, &cq, &r->cq, NULL), 0);
	SIDE_IS(fi_av_open(r->domain, &av, &r->av, NULL), 0);
	SIDE_IS(fi_endpoint(r->domain, r->info, &r->ep, NULL), 0);
	SIDE_IS(fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	SIDE_IS(fi_ep_bind(r->ep, &r->av->fid, 0), 0);
	SIDE_IS(fi_enable(r->ep), 0);
	r->mail = malloc((size_t)(RECEIVES + 1) * MAIL);
	SIDE_TRUE(r->mail);
	SIDE_IS(fi_mr_reg(r->domain, r->mail, (size_t)(RECEIVES + 1) * MAIL, FI_SEND | FI_RECV, 0,
			  0, 0, &r->mail_mr, NULL),
		0);
	for (int i = 0; i < RECEIVES; i++)
		receive_post(r, i);
}

static void rail_meet(struct rail *r)
{
	char own[ADDRESS], other[ADDRESS];
	size_t n = sizeof(own);

	SIDE_IS(fi_getname(&r->ep->fid, own, &n), 0);
	SIDE_IS(n, ADDRESS);
	sides_give(own, sizeof(own));
	sides_take(other, sizeof(other));
	SIDE_IS(fi_av_insert(r->av, own, 1, &r->self, 0, NULL), 1);
	SIDE_IS(fi_av_insert(r->av, other, 1, &r->peer, 0, NULL), 1);
}

static void rail_close(struct rail *r)
{
	SIDE_IS(fi_close(&r->ep->fid), 0);
	SIDE_IS(fi_close(&r->cq->fid), 0);
	SIDE_IS(fi_close(&r->av->fid), 0);
	SIDE_IS(fi_close(&r->mail_mr->fid), 0);
	SIDE_IS(fi_close(&r->domain->fid), 0);
	SIDE_IS(fi_close(&r->fabric->fid), 0);
	fi_freeinfo(r->info);
	free(r->mail);
}

/* A notification is a number and bytes after it, and comes in the order of sending. */
static void rail_note(struct rail *r, const struct fi_cq_data_entry *e)
{
	int i = (int)((struct fi_context *)e->op_context - r->context);
	uint32_t number = (uint32_t)r->notes;

	SIDE_TRUE(i >= 0 && i < RECEIVES);
	SIDE_IS(e->data, data_of(NOTE, number));
	SIDE_IS(e->len, 1 + number * 97 % MAIL);
	SIDE_TRUE(pair_filled(r->mail + (size_t)i * MAIL, e->len, number));
	r->notes++;
	receive_post(r, i);
}

static void rail_take(struct rail *r, const struct fi_cq_data_entry *e)
{
	if (e->flags & FI_SEND) {
		r->sent++;
	} else if (e->flags & FI_RECV) {
		rail_note(r, e);
	} else if (e->flags & FI_WRITE) {
		r->written++;
	} else if (e->flags & FI_READ) {
		r->read++;
	} else {
		SIDE_TRUE(e->flags & FI_REMOTE_WRITE);
		SIDE_TRUE(e->flags & FI_REMOTE_CQ_DATA);
		SIDE_IS(e->data & 0xF, TRANSFER);
		r->told++;
		r->told_sum += e->data >> 12;
	}
}

static void rail_progress(struct rail *r)
{
	struct fi_cq_data_entry e[READ_AT_ONCE];
	ssize_t n = fi_cq_read(r->cq, e, READ_AT_ONCE);

	SIDE_TRUE(n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++)
		rail_take(r, &e[i]);
}

static void rail_until(struct rail *r, const uint64_t *count, uint64_t wanted)
{
	while (*count < wanted)
		rail_progress(r);
	SIDE_IS(*count, wanted);
}

static struct fid_mr *rail_register(struct rail *r, void *buf, size_t len, struct place *place)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_REMOTE_WRITE | FI_REMOTE_READ,
		.iface = FI_HMEM_SYSTEM,
	};
	struct fid_mr *mr;

	SIDE_IS(fi_mr_regattr(r->domain, &attr, 0, &mr), 0);
	place->key = fi_mr_key(mr);
	SIDE_TRUE(place->key != FI_KEY_NOTAVAIL);
	place->addr =
		r->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)buf : 0;
	return mr;
}

static void rail_write(struct rail *r, const void *buf, size_t len, struct fid_mr *mr, fi_addr_t to,
		       const struct place *place, uint64_t at, unsigned int transfer, bool more,
		       struct fi_context *context)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};
	struct fi_rma_iov rma = {.addr = place->addr + at, .len = len, .key = place->key};
	void *desc = fi_mr_desc(mr);
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = context,
		.data = data_of(TRANSFER, transfer),
	};
	ssize_t ret;

	while ((ret = fi_writemsg(r->ep, &msg, FI_REMOTE_CQ_DATA | (more ? FI_MORE : 0))) ==
	       -FI_EAGAIN)
		rail_progress(r);
	SIDE_IS(ret, 0);
}

/* Memory of each side: what it gives, and what it gets. */
struct store {
	uint8_t *own, *got;
	struct fid_mr *own_mr, *got_mr;
	struct place place[2]; /* of `own` and `got` here */
	struct place there[2]; /* of the other side's */
	struct fi_context context[BLOCKS];
	size_t len;
};

static void store_open(struct store *s, struct rail *r, size_t len, uint32_t seed)
{
	s->len = len;
	s->own = malloc(len);
	s->got = calloc(1, len);
	SIDE_TRUE(s->own && s->got);
	pair_fill(s->own, len, seed);
	s->own_mr = rail_register(r, s->own, len, &s->place[0]);
	s->got_mr = rail_register(r, s->got, len, &s->place[1]);
	sides_give(s->place, sizeof(s->place));
	sides_take(s->there, sizeof(s->there));
}

static void store_close(struct store *s)
{
	SIDE_IS(fi_close(&s->own_mr->fid), 0);
	SIDE_IS(fi_close(&s->got_mr->fid), 0);
	free(s->own);
	free(s->got);
}

/* Every block both ways at once; the target counts what it is told, and then has the bytes. */
static void writes_side(bool first)
{
	static struct rail r;
	static struct store s;

	rail_open(&r);
	rail_meet(&r);
	store_open(&s, &r, (size_t)BLOCKS * BLOCK, first);
	for (uint32_t i = 0; i < BLOCKS; i++)
		rail_write(&r, s.own + (size_t)i * BLOCK, BLOCK, s.own_mr, r.peer, &s.there[1],
			   (uint64_t)i * BLOCK, i, (i + 1) % BATCH, &s.context[i]);
	rail_until(&r, &r.written, BLOCKS);
	rail_until(&r, &r.told, BLOCKS);
	SIDE_IS(r.told_sum, BLOCKS * (BLOCKS - 1) / 2);
	SIDE_TRUE(pair_filled(s.got, s.len, !first));
	sides_meet();
	store_close(&s);
	rail_close(&r);
}

static void write__of_many_blocks_is_told(void **state)
{
	sides_run(writes_side);
}

/* Of no byte, of some, of many: also into the middle. */
static void lengths_side(bool first)
{
	static const size_t lengths[] = {0, 1, 4095, 16384, 16385, 1000001, LARGE};
	enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };
	static struct rail r;
	static struct store s;

	rail_open(&r);
	rail_meet(&r);
	store_open(&s, &r, LARGE + 1, 3 + first);
	for (uint32_t i = 0; i < LENGTHS; i++) {
		uint64_t at = i % 2 && lengths[i] < LARGE;

		memset(s.got, 0, s.len);
		sides_meet();
		rail_write(&r, s.own + at, lengths[i], s.own_mr, r.peer, &s.there[1], at, i, false,
			   &s.context[i]);
		rail_until(&r, &r.written, i + 1);
		rail_until(&r, &r.told, i + 1);
		for (size_t k = 0; k < at; k++)
			SIDE_IS(s.got[k], 0);
		SIDE_IS(s.got[at + lengths[i]], 0);
		pair_fill(s.own, s.len, 3 + !first);
		SIDE_IS(memcmp(s.got + at, s.own + at, lengths[i]), 0);
		pair_fill(s.own, s.len, 3 + first);
		sides_meet();
	}
	store_close(&s);
	rail_close(&r);
}

static void write__of_every_length(void **state)
{
	sides_run(lengths_side);
}

static void reads_side(bool first)
{
	static struct rail r;
	static struct store s;

	rail_open(&r);
	rail_meet(&r);
	store_open(&s, &r, LARGE, 7 + first);
	for (uint32_t i = 0; i < LARGE / BLOCK; i++) {
		size_t at = (size_t)i * BLOCK;
		ssize_t ret;

		while ((ret = fi_read(r.ep, s.got + at, BLOCK, fi_mr_desc(s.got_mr), r.peer,
				      s.there[0].addr + at, s.there[0].key, &s.context[i])) ==
		       -FI_EAGAIN)
			rail_progress(&r);
		SIDE_IS(ret, 0);
	}
	rail_until(&r, &r.read, LARGE / BLOCK);
	SIDE_TRUE(pair_filled(s.got, s.len, 7 + !first));
	sides_meet();
	store_close(&s);
	rail_close(&r);
}

static void read__of_many_blocks(void **state)
{
	sides_run(reads_side);
}

/* More notifications than receives are posted, in order. */
static void notes_side(bool first)
{
	enum { NOTES = 4 * RECEIVES };
	static struct rail r;
	struct fi_context context;
	char *from;

	rail_open(&r);
	rail_meet(&r);
	from = r.mail + (size_t)RECEIVES * MAIL;
	for (uint32_t i = 0; i < NOTES; i++) {
		size_t len = 1 + i * 97 % MAIL;
		ssize_t ret;

		pair_fill(from, len, i);
		while ((ret = fi_senddata(r.ep, from, len, fi_mr_desc(r.mail_mr), data_of(NOTE, i),
					  r.peer, &context)) == -FI_EAGAIN)
			rail_progress(&r);
		SIDE_IS(ret, 0);
		rail_until(&r, &r.sent, i + 1);
	}
	rail_until(&r, &r.notes, NOTES);
	sides_meet();
	rail_close(&r);
}

static void notes__in_the_order_of_sending(void **state)
{
	sides_run(notes_side);
}

/* A program is a peer of itself as well. */
static void self_side(bool first)
{
	static struct rail r;
	static struct store s;

	rail_open(&r);
	rail_meet(&r);
	store_open(&s, &r, LARGE, 9 + first);
	rail_write(&r, s.own, LARGE, s.own_mr, r.self, &s.place[1], 0, 5, false, &s.context[0]);
	rail_until(&r, &r.written, 1);
	rail_until(&r, &r.told, 1);
	SIDE_TRUE(pair_filled(s.got, s.len, 9 + first));
	sides_meet();
	SIDE_IS(fi_av_remove(r.av, &r.peer, 1, 0), 0);
	store_close(&s);
	rail_close(&r);
}

static void write__to_oneself(void **state)
{
	sides_run(self_side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__of_many_blocks_is_told),
		cmocka_unit_test(write__of_every_length),
		cmocka_unit_test(read__of_many_blocks),
		cmocka_unit_test(notes__in_the_order_of_sending),
		cmocka_unit_test(write__to_oneself),
	};

	return cmocka_run_group_tests_name("rail", tests, NULL, NULL);
}
