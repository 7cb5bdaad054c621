// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an endpoint is bound to, its control commands, and the calls of its connection management
 * table, of which a connectionless endpoint has only one: telling its address.
 */
#include "bwf.h"

#include <stdlib.h>

static int bwf_ep_bind_cq(struct bwf_ep *ep, struct bwf_cq *cq, uint64_t flags)
{
	bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
	int ret;

	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
	    (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)))
		return -FI_EBADFLAGS;
	if (((flags & FI_TRANSMIT) && ep->tx_cq) || ((flags & FI_RECV) && ep->rx_cq))
		return -FI_EINVAL;
	ret = bwf_port_add(&cq->port, ep);
	if (ret)
		return ret;
	bw_ep_lock(ep->bw);
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = selective;
		atomic_fetch_add(&cq->refs, 1);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = selective;
		atomic_fetch_add(&cq->refs, 1);
	}
	bw_ep_unlock(ep->bw);
	return 0;
}

static int bwf_ep_bind_cntr(struct bwf_ep *ep, struct bwf_cntr *cntr, uint64_t flags)
{
	static const uint64_t slot_flag[BWF_CNTR_SLOTS] = {
		[BWF_CNTR_SEND] = FI_SEND,
		[BWF_CNTR_RECV] = FI_RECV,
		[BWF_CNTR_READ] = FI_READ,
		[BWF_CNTR_WRITE] = FI_WRITE,
		[BWF_CNTR_REMOTE_READ] = FI_REMOTE_READ,
		[BWF_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
	};
	uint64_t known = 0;
	int ret;

	for (int i = 0; i < BWF_CNTR_SLOTS; i++)
		known |= slot_flag[i];
	if (!flags || (flags & ~known))
		return -FI_EBADFLAGS;
	for (int i = 0; i < BWF_CNTR_SLOTS; i++)
		if ((flags & slot_flag[i]) && ep->cntr[i])
			return -FI_EINVAL;
	ret = bwf_port_add(&cntr->port, ep);
	bw_ep_lock(ep->bw);
	for (int i = 0; i < BWF_CNTR_SLOTS && !ret; i++) {
		if (!(flags & slot_flag[i]))
			continue;
		ep->cntr[i] = cntr;
		atomic_fetch_add(&cntr->refs, 1);
	}
	bw_ep_unlock(ep->bw);
	return ret;
}

static int bwf_ep_bind_av(struct bwf_ep *ep, struct bwf_av *av)
{
	int ret;

	if (ep->av)
		return -FI_EINVAL;
	ret = bwf_av_attach(av, ep);
	bw_ep_lock(ep->bw);
	if (!ret)
		ep->av = av;
	bw_ep_unlock(ep->bw);
	return ret;
}

/* By one thread at a time, as fi_endpoint(3) has it. The endpoint's lock is taken behind that of a
 * queue or counter: a thread that sleeps in one drives other endpoints, and may want this one. */
int bwf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct bwf_ep *ep = BWF_OF(fid, struct bwf_face, fid.fid)->ep;

	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bwf_ep_bind_cq(ep, BWF_OF(bfid, struct bwf_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return bwf_ep_bind_cntr(ep, BWF_OF(bfid, struct bwf_cntr, fid.fid), flags);
	case FI_CLASS_AV:
		return bwf_ep_bind_av(ep, BWF_OF(bfid, struct bwf_av, fid.fid));
	case FI_CLASS_EQ:
		bw_ep_lock(ep->bw);
		ep->eq = (struct bwf_eq *)bfid;
		bw_ep_unlock(ep->bw);
		return 0;
	default:
		return -FI_EINVAL;
	}
}

/* Nothing is reported any more: neither queues nor counters see the endpoint after this. */
void bwf_ep_unbind_all(struct bwf_ep *ep)
{
	struct bwf_cq *tx_cq = ep->tx_cq, *rx_cq = ep->rx_cq;
	struct bwf_cntr *cntr[BWF_CNTR_SLOTS];
	struct bwf_av *av = ep->av;

	bw_ep_lock(ep->bw);
	ep->av = NULL;
	memcpy(cntr, ep->cntr, sizeof(cntr));
	memset(ep->cntr, 0, sizeof(ep->cntr));
	ep->tx_cq = ep->rx_cq = NULL;
	bw_ep_unlock(ep->bw);
	if (tx_cq) {
		bwf_port_del(&tx_cq->port, ep);
		atomic_fetch_sub(&tx_cq->refs, 1);
	}
	if (rx_cq) {
		bwf_port_del(&rx_cq->port, ep);
		atomic_fetch_sub(&rx_cq->refs, 1);
	}
	for (int i = 0; i < BWF_CNTR_SLOTS; i++) {
		if (cntr[i]) {
			bwf_port_del(&cntr[i]->port, ep);
			atomic_fetch_sub(&cntr[i]->refs, 1);
		}
	}
	if (av)
		bwf_av_detach(av, ep);
}

static int bwf_ep_enable(struct bwf_ep *ep)
{
	if (!ep->av)
		return -FI_ENOAV;
	if (!ep->tx_cq && !ep->rx_cq && !ep->cntr[BWF_CNTR_SEND] && !ep->cntr[BWF_CNTR_RECV] &&
	    !ep->cntr[BWF_CNTR_READ] && !ep->cntr[BWF_CNTR_WRITE])
		return -FI_ENOCQ;
	ep->enabled = true;
	return 0;
}

static int bwf_ep_flags(struct bwf_face *face, uint64_t *flags, bool set)
{
	uint64_t *mine;

	if ((*flags & FI_TRANSMIT) && (*flags & FI_RECV))
		return -FI_EINVAL;
	if (*flags & FI_TRANSMIT)
		mine = &face->tx_flags;
	else if (*flags & FI_RECV)
		mine = &face->rx_flags;
	else
		return -FI_EINVAL;
	if (set)
		*mine = *flags & ~(uint64_t)(FI_TRANSMIT | FI_RECV);
	else
		*flags = *mine;
	return 0;
}

int bwf_ep_control(struct fid *fid, int command, void *arg)
{
	struct bwf_face *face = BWF_OF(fid, struct bwf_face, fid.fid);

	switch (command) {
	case FI_ENABLE:
		return bwf_ep_enable(face->ep);
	case FI_ALIAS:
		return bwf_ep_alias(face, arg);
	case FI_GETOPSFLAG:
		return bwf_ep_flags(face, arg, false);
	case FI_SETOPSFLAG:
		return bwf_ep_flags(face, arg, true);
	default:
		return -FI_ENOSYS;
	}
}

static int bwf_cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct bwf_ep *ep = BWF_OF(fid, struct bwf_face, fid.fid)->ep;
	size_t room = *addrlen;
	struct bw_addr name;

	bw_ep_addr(ep->bw, &name);
	*addrlen = sizeof(name);
	if (addr)
		memcpy(addr, &name, room < sizeof(name) ? room : sizeof(name));
	return room < sizeof(name) ? -FI_ETOOSMALL : 0;
}

static int bwf_cm_no_setname(fid_t fid, void *addr, size_t addrlen)
{
	return -FI_ENOSYS;
}

static int bwf_cm_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

static int bwf_cm_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t len)
{
	return -FI_ENOSYS;
}

static int bwf_cm_no_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

static int bwf_cm_no_accept(struct fid_ep *ep, const void *param, size_t len)
{
	return -FI_ENOSYS;
}

static int bwf_cm_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t len)
{
	return -FI_ENOSYS;
}

static int bwf_cm_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int bwf_cm_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
			  void *context)
{
	return -FI_ENOSYS;
}

struct fi_ops_cm bwf_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = bwf_cm_no_setname,
	.getname = bwf_cm_getname,
	.getpeer = bwf_cm_no_getpeer,
	.connect = bwf_cm_no_connect,
	.listen = bwf_cm_no_listen,
	.accept = bwf_cm_no_accept,
	.reject = bwf_cm_no_reject,
	.shutdown = bwf_cm_no_shutdown,
	.join = bwf_cm_no_join,
};
