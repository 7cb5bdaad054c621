/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "path/pmtu.h"
#include "wire.h"

void bw_pmtu_begin(struct bw_pmtu *m, uint32_t ceiling)
{
	m->mtu = ceiling < BW_MTU_BASE ? ceiling : BW_MTU_BASE;
	m->fail = ceiling + 1;
	m->probe = ceiling > m->mtu ? ceiling : 0;
	m->tries = 0;
	m->flying = false;
}

/* Halve the interval between what passes and what does not, until it is small. */
static bool bw_pmtu_next(struct bw_pmtu *m)
{
	m->tries = 0;
	m->probe = 0;
	if (m->fail > m->mtu + BW_PROBE_GRAIN)
		m->probe = (m->mtu + (m->fail - m->mtu) / 2) & ~7u;
	return true;
}

bool bw_pmtu_probe_acked(struct bw_pmtu *m, uint32_t size)
{
	m->flying = false;
	if (size <= m->mtu)
		return false;
	m->mtu = size;
	return bw_pmtu_next(m);
}

bool bw_pmtu_probe_lost(struct bw_pmtu *m, uint32_t size, bool later)
{
	m->flying = false;
	if (size != m->probe)
		return false;
	m->held = !later;
	if (!later || ++m->tries < BW_PROBE_TRIES)
		return false;
	m->fail = size;
	return bw_pmtu_next(m);
}

/* When several large frames in a row get lost, and none of their size or larger arrives in between,
 * but smaller ones do, the path no longer takes this size (a "black hole", RFC 8899 4.3). */
void bw_pmtu_acked(struct bw_pmtu *m, uint32_t size)
{
	if (BW_LIKELY(!m->lost))
		return;
	if (size < m->least)
		m->small_acked = true;
	else
		m->lost = 0;
}

bool bw_pmtu_lost(struct bw_pmtu *m, uint32_t size)
{
	if (size <= BW_MTU_BASE / 2) { /* then it is not for their size that frames get lost */
		m->lost = 0;
		return false;
	}
	if (!m->lost)
		m->small_acked = false;
	if (!m->lost || size < m->least)
		m->least = size;
	if (++m->lost < BW_BLACK_HOLE || !m->small_acked)
		return false;
	m->lost = 0;
	m->fail = m->mtu;
	m->mtu = m->mtu > BW_MTU_BASE ? BW_MTU_BASE : BW_FRAME_MIN_MTU;
	return bw_pmtu_next(m);
}
