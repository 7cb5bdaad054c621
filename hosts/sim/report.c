/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measurements. */
#include "sim.h"
int sim_report(const struct bw_protocol *protocol, bool json){return 2;}
