/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists, tables of lists, arrays of numbered things, and sets of bits, as the kernel has them. */
#ifndef FUZZ_KERNEL_LISTS_H
#define FUZZ_KERNEL_LISTS_H

struct list_head {
	struct list_head *next, *prev;
};

#define list_entry(p, type, field)	    container_of(p, type, field)
#define list_first_entry(list, type, field) list_entry((list)->next, type, field)
#define list_empty(list)		    ((list)->next == (list))
#define list_empty_careful(list)	    list_empty(list)
#define list_first_entry_or_null(list, type, field)                                                \
	(list_empty(list) ? NULL : list_first_entry(list, type, field))
#define list_for_each_entry(p, list, field)                                                        \
	for (p = list_entry((list)->next, typeof(*p), field); &p->field != (list);                 \
	     p = list_entry(p->field.next, typeof(*p), field))
#define list_for_each_entry_safe(p, after, list, field)                                            \
	for (p = list_entry((list)->next, typeof(*p), field),                                      \
	    after = list_entry(p->field.next, typeof(*p), field);                                  \
	     &p->field != (list); p = after, after = list_entry(p->field.next, typeof(*p), field))

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline void list_add_tail(struct list_head *item, struct list_head *list)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

/* Whoever looks at it afterwards is seen by the sanitizers. */
static inline void list_add(struct list_head *item, struct list_head *list)
{
	list_add_tail(item, list->next);
}

static inline void list_del(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	item->next = item->prev = (struct list_head *)8;
}

static inline void list_del_init(struct list_head *item)
{
	list_del(item);
	INIT_LIST_HEAD(item);
}

static inline void list_move_tail(struct list_head *item, struct list_head *list)
{
	list_del(item);
	list_add_tail(item, list);
}

static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	while (!list_empty(from)) {
		struct list_head *last = from->prev;

		list_del(last);
		last->next = to->next;
		last->prev = to;
		to->next->prev = last;
		to->next = last;
	}
}

struct hlist_node {
	struct hlist_node *next, **pprev;
};
struct hlist_head {
	struct hlist_node *first;
};

#define hlist_entry(p, type, field) container_of(p, type, field)
#define hlist_entry_safe(p, type, field)                                                           \
	({                                                                                         \
		struct hlist_node *fake_at = (p);                                                  \
		fake_at ? hlist_entry(fake_at, type, field) : NULL;                                \
	})
#define hlist_empty(list) (!(list)->first)
#define hlist_for_each_entry(p, list, field)                                                       \
	for (p = hlist_entry_safe((list)->first, typeof(*p), field); p;                            \
	     p = hlist_entry_safe(p->field.next, typeof(*p), field))

static inline bool hlist_unhashed(const struct hlist_node *n)
{
	return !n->pprev;
}

static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *list)
{
	n->next = list->first;
	if (n->next)
		n->next->pprev = &n->next;
	list->first = n;
	n->pprev = &list->first;
}

static inline void hlist_del(struct hlist_node *n)
{
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
	n->next = (struct hlist_node *)8;
	n->pprev = (struct hlist_node **)8;
}

static inline void hlist_del_init(struct hlist_node *n)
{
	if (hlist_unhashed(n))
		return;
	hlist_del(n);
	n->next = NULL;
	n->pprev = NULL;
}

#define DECLARE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]
#define fake_bucket(table, key)	      (&(table)[(key) % ARRAY_SIZE(table)])
#define hash_add_rcu(table, n, key)   hlist_add_head(n, fake_bucket(table, key))
#define hash_del_rcu(n)		      hlist_del_init(n)
#define hash_for_each_possible_rcu(table, p, field, key)                                           \
	hlist_for_each_entry(p, fake_bucket(table, key), field)
#define hash_for_each_rcu(table, bucket, p, field)                                                 \
	for ((bucket) = 0, p = NULL; !p && (bucket) < (int)ARRAY_SIZE(table); (bucket)++)          \
		hlist_for_each_entry(p, &(table)[bucket], field)
#define jhash_1word(value, salt) ((u32)((value) ^ (salt)) * 0x61C88647u)
#define hash_32(value, bits)	 ((u32)(value)*0x61C88647u >> (32 - (bits)))

struct llist_node {
	struct llist_node *next;
};
struct llist_head {
	struct llist_node *first;
};
#define LLIST_HEAD(name)	    struct llist_head name
#define llist_empty(list)	    (!(list)->first)
#define llist_entry(p, type, field) container_of(p, type, field)
#define llist_for_each_entry_safe(p, after, list, field)                                           \
	for (struct llist_node *fake_##p = (list), *fake_##after;                                  \
	     fake_##p && (p = llist_entry(fake_##p, typeof(*p), field),                            \
			 fake_##after = fake_##p->next, (void)(after), true);                      \
	     fake_##p = fake_##after)

static inline bool llist_add(struct llist_node *n, struct llist_head *list)
{
	n->next = list->first;
	list->first = n;
	return !n->next;
}

static inline struct llist_node *llist_del_all(struct llist_head *list)
{
	struct llist_node *all = list->first;

	list->first = NULL;
	return all;
}

static inline struct llist_node *llist_del_first(struct llist_head *list)
{
	struct llist_node *first = list->first;

	if (first)
		list->first = first->next;
	return first;
}

/* A tree is a list here, in the order in which its things were added. */
struct rb_node {
	struct rb_node *left, *right;
};
struct rb_root {
	struct rb_node *rb_node;
};
struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};
#define RB_ROOT_CACHED		 ((struct rb_root_cached){0})
#define rb_entry(p, type, field) container_of(p, type, field)

static inline void fake_tree_add(struct rb_node *n, struct rb_root *root)
{
	n->left = NULL;
	n->right = root->rb_node;
	if (n->right)
		n->right->left = n;
	root->rb_node = n;
}

static inline void rb_erase(struct rb_node *n, struct rb_root *root)
{
	if (n->left)
		n->left->right = n->right;
	else if (root->rb_node == n)
		root->rb_node = n->right;
	else
		fuzz_bad("it is in no such tree");
	if (n->right)
		n->right->left = n->left;
}

/* In order, behind those that are equal. */
static inline void rb_add(struct rb_node *n, struct rb_root *root,
			  bool (*less)(struct rb_node *a, const struct rb_node *b))
{
	struct rb_node *before = NULL, *at = root->rb_node;

	for (; at && !less(n, at); at = at->right)
		before = at;
	n->left = before;
	n->right = at;
	if (at)
		at->left = n;
	if (before)
		before->right = n;
	else
		root->rb_node = n;
}

static inline struct rb_node *rb_find_first(const void *wanted, const struct rb_root *root,
					    int (*compare)(const void *wanted,
							   const struct rb_node *n))
{
	struct rb_node *n = root->rb_node;

	while (n && compare(wanted, n))
		n = n->right;
	return n;
}

#define INTERVAL_TREE_DEFINE(type, field, number, last_below, first, last, how, name)              \
	how void name##_insert(type *p, struct rb_root_cached *root)                               \
	{                                                                                          \
		fake_tree_add(&p->field, &root->rb_root);                                          \
	}                                                                                          \
	how void name##_remove(type *p, struct rb_root_cached *root)                               \
	{                                                                                          \
		rb_erase(&p->field, &root->rb_root);                                               \
	}                                                                                          \
	how type *name##_iter_first(struct rb_root_cached *root, number from, number to)           \
	{                                                                                          \
		for (struct rb_node *n = root->rb_root.rb_node; n; n = n->right) {                 \
			type *p = rb_entry(n, type, field);                                        \
                                                                                                   \
			if (first(p) <= to && last(p) >= from)                                     \
				return p;                                                          \
		}                                                                                  \
		return NULL;                                                                       \
	}

/* Numbers below FAKE_SLOTS only; there is no room for more. */
#define FAKE_SLOTS 32
struct xarray {
	void *slot[FAKE_SLOTS];
};
struct xa_node {
	void *slot[FAKE_SLOTS];
};
struct xa_limit {
	u32 min, max;
};
#define XA_LIMIT(from, to)     ((struct xa_limit){from, to})
#define XA_FLAGS_LOCK_BH       1
#define XA_FLAGS_ALLOC1	       2
#define XA_PRESENT	       0
#define xa_init_flags(xa, how) memset(xa, 0, sizeof(*(xa)))
#define xa_load(xa, index)     ((index) < FAKE_SLOTS ? (xa)->slot[index] : NULL)
#define xa_erase(xa, index)    ((void)((xa)->slot[index] = NULL))
#define xa_for_each(xa, index, entry)                                                              \
	for ((index) = 0; (index) < FAKE_SLOTS; (index)++)                                         \
		if (((entry) = (xa)->slot[index]))

static inline void *xa_find(struct xarray *xa, unsigned long *index, unsigned long most, int what)
{
	for (; *index < FAKE_SLOTS; ++*index)
		if (xa->slot[*index])
			return xa->slot[*index];
	return NULL;
}

static inline int xa_alloc_cyclic(struct xarray *xa, u32 *index, void *entry, struct xa_limit limit,
				  u32 *next, gfp_t gfp)
{
	for (u32 i = 0, at; i < FAKE_SLOTS - limit.min; i++) {
		at = (*next + i) % FAKE_SLOTS;
		if (at < limit.min)
			at = limit.min;
		if (xa->slot[at])
			continue;
		xa->slot[at] = entry;
		*index = at;
		*next = at + 1;
		return 0;
	}
	return -ENOMEM;
}

#define DECLARE_BITMAP(name, bits) unsigned long name[((bits) + 63) / 64]

static inline bool __test_and_set_bit(unsigned long bit, unsigned long *map)
{
	bool was = map[bit / 64] >> bit % 64 & 1;

	map[bit / 64] |= 1ul << bit % 64;
	return was;
}

static inline void __clear_bit(unsigned long bit, unsigned long *map)
{
	map[bit / 64] &= ~(1ul << bit % 64);
}

#define test_and_set_bit(bit, map)	__test_and_set_bit(bit, map)
#define test_and_set_bit_lock(bit, map) __test_and_set_bit(bit, map)
#define clear_bit(bit, map)		__clear_bit(bit, map)
#define clear_bit_unlock(bit, map)	__clear_bit(bit, map)

static inline unsigned long find_next_zero_bit(const unsigned long *map, unsigned long bits,
					       unsigned long from)
{
	while (from < bits && map[from / 64] >> from % 64 & 1)
		from++;
	return from;
}

#endif
