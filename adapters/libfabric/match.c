// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The matching engine: see match.h. The lists in order of posting and of arrival are the truth; an
 * index is built from them when a list grows long and dissolves by itself when it runs empty.
 */
#include "match.h"

#define BWF_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static bool bwf_match_fits(const struct bwf_posted *p, uint32_t peer, uint64_t tag)
{
	return ((p->tag ^ tag) & ~p->ignore) == 0 && (p->peer == peer || p->peer == BWF_MATCH_ANY);
}

/* The class of receives with this mask and kind of source, made if there is room. */
static uint32_t bwf_match_classify(struct bwf_match *m, uint64_t ignore, bool any)
{
	uint32_t c;

	for (c = 0; c < m->classes; c++) {
		if (m->cls[c].ignore == ignore && m->cls[c].any == any)
			return c;
	}
	if (c < BWF_MATCH_CLASSES) {
		m->cls[c] = (struct bwf_match_class){.ignore = ignore, .any = any};
		m->classes++;
	}
	return c;
}

/* The key that a message of (peer, tag) has in a class. */
static uint32_t bwf_match_key_peer(const struct bwf_match_class *cls, uint32_t peer)
{
	return cls->any ? BWF_MATCH_ANY : peer;
}

static bool bwf_match_hash_posted(struct bwf_match *m, struct bwf_posted *p)
{
	if (p->cls == BWF_MATCH_CLASSES)
		return true;
	return bwf_lanes_add(&m->cls[p->cls].posted, p->peer, p->tag & ~p->ignore, &p->link);
}

static void bwf_match_unhash_all_posted(struct bwf_match *m)
{
	for (struct bwf_posted *p = m->posted_head; p; p = p->next) {
		if (p->link.lane)
			bwf_lanes_del(&m->cls[p->cls].posted, &p->link);
	}
	m->posted_hashed = false;
}

static void bwf_match_hash_all_posted(struct bwf_match *m)
{
	m->posted_hashed = true;
	for (struct bwf_posted *p = m->posted_head; p; p = p->next) {
		if (!bwf_match_hash_posted(m, p)) {
			bwf_match_unhash_all_posted(m);
			return;
		}
	}
}

void bwf_match_post(struct bwf_match *m, struct bwf_posted *p)
{
	p->seq = m->seq++;
	p->cls = bwf_match_classify(m, p->ignore, p->peer == BWF_MATCH_ANY);
	p->link.lane = NULL;
	p->next = NULL;
	p->prev = m->posted_tail;
	if (m->posted_tail)
		m->posted_tail->next = p;
	else
		m->posted_head = p;
	m->posted_tail = p;
	if (p->cls == BWF_MATCH_CLASSES)
		m->posted_classless++;
	m->posted_count++;
	if (!m->posted_hashed) {
		if (m->posted_count > BWF_MATCH_SHORT)
			bwf_match_hash_all_posted(m);
	} else if (!bwf_match_hash_posted(m, p)) {
		bwf_match_unhash_all_posted(m);
	}
}

void bwf_match_unpost(struct bwf_match *m, struct bwf_posted *p)
{
	if (p->prev)
		p->prev->next = p->next;
	else
		m->posted_head = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else
		m->posted_tail = p->prev;
	if (p->link.lane)
		bwf_lanes_del(&m->cls[p->cls].posted, &p->link);
	if (p->cls == BWF_MATCH_CLASSES)
		m->posted_classless--;
	if (--m->posted_count == 0)
		m->posted_hashed = false;
}

static struct bwf_posted *bwf_match_target_hashed(const struct bwf_match *m, uint32_t peer,
						  uint64_t tag)
{
	struct bwf_posted *best = NULL;

	for (uint32_t c = 0; c < m->classes; c++) {
		const struct bwf_match_class *cls = &m->cls[c];
		struct bwf_link *link = bwf_lanes_first(&cls->posted, bwf_match_key_peer(cls, peer),
							tag & ~cls->ignore);
		struct bwf_posted *p;

		if (!link)
			continue;
		p = BWF_OF(link, struct bwf_posted, link);
		if (!best || p->seq < best->seq)
			best = p;
	}
	if (!m->posted_classless)
		return best;
	for (struct bwf_posted *p = m->posted_head; p && p != best; p = p->next) {
		if (p->cls == BWF_MATCH_CLASSES && bwf_match_fits(p, peer, tag))
			return p;
	}
	return best;
}

struct bwf_posted *bwf_match_target(const struct bwf_match *m, uint32_t peer, uint64_t tag)
{
	struct bwf_posted *p;

	if (m->posted_hashed)
		return bwf_match_target_hashed(m, peer, tag);
	for (p = m->posted_head; p; p = p->next) {
		if (bwf_match_fits(p, peer, tag))
			break;
	}
	return p;
}

static bool bwf_match_hash_arrived(struct bwf_match *m, uint32_t c, struct bwf_arrived *a)
{
	struct bwf_match_class *cls = &m->cls[c];

	return bwf_lanes_add(&cls->arrived, bwf_match_key_peer(cls, a->peer), a->tag & ~cls->ignore,
			     &a->link[c]);
}

static void bwf_match_unhash_all_arrived(struct bwf_match *m, uint32_t c)
{
	for (struct bwf_arrived *a = m->arrived_head; a; a = a->next) {
		if (a->link[c].lane)
			bwf_lanes_del(&m->cls[c].arrived, &a->link[c]);
	}
	m->cls[c].arrived_hashed = false;
}

static void bwf_match_hash_all_arrived(struct bwf_match *m, uint32_t c)
{
	m->cls[c].arrived_hashed = true;
	for (struct bwf_arrived *a = m->arrived_head; a; a = a->next) {
		if (!bwf_match_hash_arrived(m, c, a)) {
			bwf_match_unhash_all_arrived(m, c);
			return;
		}
	}
}

void bwf_match_store(struct bwf_match *m, struct bwf_arrived *a)
{
	a->next = NULL;
	a->prev = m->arrived_tail;
	if (m->arrived_tail)
		m->arrived_tail->next = a;
	else
		m->arrived_head = a;
	m->arrived_tail = a;
	m->arrived_count++;
	for (uint32_t c = 0; c < BWF_MATCH_CLASSES; c++) {
		a->link[c].lane = NULL;
		if (m->cls[c].arrived_hashed && !bwf_match_hash_arrived(m, c, a))
			bwf_match_unhash_all_arrived(m, c);
	}
}

void bwf_match_unstore(struct bwf_match *m, struct bwf_arrived *a)
{
	if (a->prev)
		a->prev->next = a->next;
	else
		m->arrived_head = a->next;
	if (a->next)
		a->next->prev = a->prev;
	else
		m->arrived_tail = a->prev;
	m->arrived_count--;
	for (uint32_t c = 0; c < BWF_MATCH_CLASSES; c++) {
		if (a->link[c].lane)
			bwf_lanes_del(&m->cls[c].arrived, &a->link[c]);
		if (m->arrived_count == 0)
			m->cls[c].arrived_hashed = false;
	}
}

struct bwf_arrived *bwf_match_find(struct bwf_match *m, uint32_t peer, uint64_t tag,
				   uint64_t ignore)
{
	struct bwf_posted want = {.tag = tag, .ignore = ignore, .peer = peer};
	struct bwf_arrived *a;
	uint32_t c = BWF_MATCH_CLASSES;

	if (m->arrived_count > BWF_MATCH_SHORT)
		c = bwf_match_classify(m, ignore, peer == BWF_MATCH_ANY);
	if (c < BWF_MATCH_CLASSES && !m->cls[c].arrived_hashed)
		bwf_match_hash_all_arrived(m, c);
	if (c < BWF_MATCH_CLASSES && m->cls[c].arrived_hashed) {
		struct bwf_link *link = bwf_lanes_first(&m->cls[c].arrived, peer, tag & ~ignore);

		return link ? BWF_OF(link - c, struct bwf_arrived, link) : NULL;
	}
	for (a = m->arrived_head; a; a = a->next) {
		if (bwf_match_fits(&want, a->peer, a->tag))
			break;
	}
	return a;
}

void bwf_match_free(struct bwf_match *m)
{
	for (uint32_t c = 0; c < m->classes; c++) {
		bwf_lanes_free(&m->cls[c].posted);
		bwf_lanes_free(&m->cls[c].arrived);
	}
	*m = (struct bwf_match){0};
}
