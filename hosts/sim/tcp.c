/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The model of a CUBIC flow. */
#include "sim.h"
void sim_tcp_receive(struct sim *s, struct sim_frame *f){ sim_frame_free(s,f);}
void sim_tcp_timer(struct sim_tcp *t, uint32_t g){}
void sim_tcp_free(struct sim *s){}
