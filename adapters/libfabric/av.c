// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The address vector: fi_addr_t is an index into a table of endpoint addresses, for maps as for
 * tables. It only stores addresses; each endpoint translates them into its own numbers of peers at
 * their first use (peer.c), so inserting thousands costs no traffic.
 */
#include "bwf.h"
#include "name.h"

#include <stdio.h>
#include <stdlib.h>

static int bwf_av_close(struct fid *fid)
{
	struct bwf_av *av = BWF_OF(fid, struct bwf_av, fid.fid);

	if (atomic_load(&av->refs))
		return -FI_EBUSY;
	atomic_fetch_sub(&av->dom->refs, 1);
	free(av->entry);
	free(av->eps);
	free(av);
	return 0;
}

static int bwf_av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct bwf_av *av = BWF_OF(fid, struct bwf_av, fid.fid);

	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	av->eq = (struct bwf_eq *)bfid;
	return 0;
}

bool bwf_av_get(struct bwf_av *av, fi_addr_t fi_addr, struct bw_addr *addr)
{
	bool found;

	bwf_lock_take(&av->lock);
	found = fi_addr < av->count && av->entry[fi_addr].valid;
	if (found)
		*addr = av->entry[fi_addr].addr;
	bwf_lock_drop(&av->lock);
	return found;
}

int bwf_av_attach(struct bwf_av *av, struct bwf_ep *ep)
{
	struct bwf_ep **eps;
	int ret = 0;

	bwf_lock_take(&av->lock);
	eps = realloc(av->eps, (av->eps_count + 1) * sizeof(*eps));
	if (eps) {
		eps[av->eps_count++] = ep;
		av->eps = eps;
		atomic_fetch_add(&av->refs, 1);
	} else {
		ret = -FI_ENOMEM;
	}
	bwf_lock_drop(&av->lock);
	return ret;
}

void bwf_av_detach(struct bwf_av *av, struct bwf_ep *ep)
{
	struct bwf_domain *dom = av->dom;

	pthread_mutex_lock(&dom->walk);
	bwf_lock_take(&av->lock);
	for (size_t i = 0; i < av->eps_count; i++) {
		if (av->eps[i] == ep) {
			av->eps[i] = av->eps[--av->eps_count];
			atomic_fetch_sub(&av->refs, 1);
			break;
		}
	}
	bwf_lock_drop(&av->lock);
	pthread_mutex_unlock(&dom->walk);
}

/* Room for n more entries. Called with the lock. */
static bool bwf_av_reserve(struct bwf_av *av, size_t n)
{
	size_t room = av->room ? av->room : 64;
	struct bwf_av_entry *entry;

	while (room < av->count + n)
		room *= 2;
	if (room == av->room)
		return true;
	entry = realloc(av->entry, room * sizeof(*entry));
	if (!entry)
		return false;
	av->entry = entry;
	av->room = room;
	return true;
}

/* Add one address. A name is resolved first, without the lock: its owner may take time to answer.
 */
static int bwf_av_add(struct bwf_av *av, const struct bw_addr *addr, fi_addr_t *fi_addr)
{
	struct bw_addr found = *addr;
	int ret = bwf_name_is(&found) ? bwf_name_resolve(&found) : 0;

	if (ret)
		return ret;
	bwf_lock_take(&av->lock);
	if (bwf_av_reserve(av, 1)) {
		av->entry[av->count] = (struct bwf_av_entry){.addr = found, .valid = true};
		*fi_addr = av->count++;
		atomic_fetch_add(&av->inserted, 1);
		for (size_t i = 0; i < av->eps_count; i++) {
			if (atomic_load(&av->eps[i]->nameless))
				atomic_store(&av->eps[i]->unsought, true);
		}
	} else {
		ret = -FI_ENOMEM;
	}
	bwf_lock_drop(&av->lock);
	return ret;
}

/* The end of an insertion: the number of addresses, told at once or by an event. */
static int bwf_av_inserted(struct bwf_av *av, int count, void *context)
{
	if (!av->eq)
		return count;
	bwf_eq_post(av->eq, FI_AV_COMPLETE,
		    &(struct fi_eq_entry){
			    .fid = &av->fid.fid, .context = context, .data = (uint64_t)count});
	return 0;
}

static int bwf_av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
			 uint64_t flags, void *context)
{
	struct bwf_av *av = BWF_OF(fid, struct bwf_av, fid);
	int *errors = (flags & FI_SYNC_ERR) ? context : NULL;
	int inserted = 0;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	if ((av->eq && (flags & FI_SYNC_ERR)) || (count && !addr))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		fi_addr_t index = FI_ADDR_NOTAVAIL;
		struct bw_addr one;
		int ret;

		memcpy(&one, (const char *)addr + i * sizeof(one), sizeof(one));
		ret = bwf_av_add(av, &one, &index);
		if (fi_addr)
			fi_addr[i] = index;
		if (errors)
			errors[i] = -ret;
		if (!ret)
			inserted++;
	}
	return bwf_av_inserted(av, inserted, context);
}

static int bwf_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			    fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct bw_addr name;
	int ret;

	if (!node || !service)
		return -FI_EINVAL;
	ret = bwf_name_make(node, service, false, &name);
	return ret ? ret : bwf_av_insert(fid, &name, 1, fi_addr, flags, context);
}

static int bwf_av_no_insertsym(struct fid_av *fid, const char *node, size_t nodes,
			       const char *service, size_t services, fi_addr_t *fi_addr,
			       uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static struct bwf_ep *bwf_av_ep(struct bwf_av *av, size_t i)
{
	struct bwf_ep *ep;

	bwf_lock_take(&av->lock);
	ep = i < av->eps_count ? av->eps[i] : NULL;
	bwf_lock_drop(&av->lock);
	return ep;
}

/* Take the entries out, then make every endpoint forget its translation. Only then may an index be
 * that of another address. */
static int bwf_av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct bwf_av *av = BWF_OF(fid, struct bwf_av, fid);
	struct bwf_ep *ep;
	int ret = 0;

	pthread_mutex_lock(&av->dom->walk);
	bwf_lock_take(&av->lock);
	for (size_t i = 0; i < count; i++) {
		if (fi_addr[i] < av->count && av->entry[fi_addr[i]].valid)
			av->entry[fi_addr[i]].valid = false;
		else
			ret = -FI_EINVAL;
	}
	bwf_lock_drop(&av->lock);
	for (size_t e = 0; (ep = bwf_av_ep(av, e)); e++) {
		bw_ep_lock(ep->bw);
		for (size_t i = 0; i < count; i++)
			bwf_peer_forget_addr(ep, fi_addr[i]);
		bw_ep_unlock(ep->bw);
	}
	bwf_lock_take(&av->lock);
	while (av->count && !av->entry[av->count - 1].valid)
		av->count--;
	bwf_lock_drop(&av->lock);
	pthread_mutex_unlock(&av->dom->walk);
	return ret;
}

static int bwf_av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct bwf_av *av = BWF_OF(fid, struct bwf_av, fid);
	struct bw_addr found;
	size_t n = *addrlen < sizeof(found) ? *addrlen : sizeof(found);

	if (!bwf_av_get(av, fi_addr, &found))
		return -FI_EINVAL;
	memcpy(addr, &found, n);
	*addrlen = sizeof(found);
	return 0;
}

static const char *bwf_av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	static const char prefix[] = "fi_addr_beowire://";
	const uint8_t *bytes = addr;
	char text[sizeof(prefix) + 2 * sizeof(struct bw_addr)];
	size_t at = sizeof(prefix) - 1;

	memcpy(text, prefix, sizeof(prefix));
	for (size_t i = 0; i < sizeof(struct bw_addr); i++)
		at += snprintf(text + at, 3, "%02x", bytes[i]);
	if (*len)
		snprintf(buf, *len, "%s", text);
	*len = at + 1;
	return buf;
}

static int bwf_av_no_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
			 void *context)
{
	return -FI_ENOSYS;
}

static struct fi_ops bwf_av_fid_ops = BWF_FID_OPS(bwf_av_close, bwf_av_bind, bwf_no_control);

static struct fi_ops_av bwf_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = bwf_av_insert,
	.insertsvc = bwf_av_insertsvc,
	.insertsym = bwf_av_no_insertsym,
	.remove = bwf_av_remove,
	.lookup = bwf_av_lookup,
	.straddr = bwf_av_straddr,
	.av_set = bwf_av_no_set,
};

int bwf_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	struct bwf_av *av;

	if (attr && (attr->name || attr->rx_ctx_bits))
		return attr->name ? -FI_ENOSYS : -FI_EINVAL;
	if (attr && attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP &&
	    attr->type != FI_AV_TABLE)
		return -FI_EINVAL;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &bwf_av_fid_ops;
	av->fid.ops = &bwf_av_ops;
	av->dom = BWF_OF(fid, struct bwf_domain, fid);
	av->type = attr && attr->type == FI_AV_TABLE ? FI_AV_TABLE : FI_AV_MAP;
	if (attr && attr->type == FI_AV_UNSPEC)
		attr->type = av->type;
	atomic_fetch_add(&av->dom->refs, 1);
	*out = &av->fid;
	return 0;
}
