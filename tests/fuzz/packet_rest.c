/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rest of libbeowire, which has no part in raw frames: it does nothing. */
#include "ep.h"
#include "link/packet/served.h"
#include "refuse.h"

#define NOTHING(result, name, ...)                                                                 \
	result name(__VA_ARGS__)                                                                   \
	{                                                                                          \
		return (result)0;                                                                  \
	}

NOTHING(void, bw_fanout_visit, struct bw_ep *e)
NOTHING(void, bw_helper_rouse, struct bw_ep *e)
NOTHING(void, bw_host_events, struct bw_ep *e)
NOTHING(void, bw_host_shrink, struct bw_ep *e)
NOTHING(bool, bw_kernel_admits, struct bw_ep *e, const struct bw_rx_frame *f)
NOTHING(int, bw_kernel_poll, struct bw_ep *e)
NOTHING(int, bw_local_claim, uint16_t engine)
NOTHING(void, bw_local_expect, struct bw_local *l)
NOTHING(void, bw_local_looked, struct bw_local *l, uint64_t at)
NOTHING(int, bw_local_poll, struct bw_local *l, uint64_t at, bool all)
NOTHING(int, bw_local_sights, const struct bw_local *l, struct bw_local_sight *s, int n)
NOTHING(void, bw_lock_hand_over, struct bw_lock *l)
NOTHING(void, bw_lock_wait, struct bw_lock *l)
NOTHING(void, bw_publish, struct bw_ep *e)
NOTHING(void, bw_remote_bury, struct bw_ep *e)
NOTHING(void, bw_remote_check_links, struct bw_ep *e)
NOTHING(int, bw_udp_frames, struct bw_udp *u, struct bw_rx_frame *f, int n)
NOTHING(int, bw_udp_receive, struct bw_udp *u)
NOTHING(int, bw_udp_receive_any, struct bw_udp *u)
NOTHING(bool, bw_udp_refusal, struct bw_udp *u, uint32_t cluster, struct bw_refuse_frame *r,
	struct bw_rx_frame *f)
NOTHING(void, bw_wait_rouse, struct bw_ep *e)
NOTHING(void, bw_wait_udp, struct bw_ep *e)
NOTHING(void, bw_wait_leave, struct bw_ep *e, bool found, bool armed)
NOTHING(bool, bw_wait_yield, struct bw_ep *e)
NOTHING(bool, bw_service_there, const struct bw_env *env)
NOTHING(int, bw_service_open, struct bw_packet *p, const struct bw_env *env, uint16_t engine,
	int claim, const char **why)
NOTHING(void, bw_addr_pack, struct bw_addr_fields *f, struct bw_addr *a)
