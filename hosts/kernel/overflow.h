/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes that peers make wait although nobody has asked for so many: unread messages beyond
 * SO_RCVBUF, and messages of which a part has come. All sockets together hold at most overflow_max
 * of them: a program can have many, each with peers that heed no pressure.
 *
 * Of overflow_max a user may have at most as much as is still free: the dynamic threshold of
 * Choudhury and Hahne, IEEE/ACM Transactions on Networking 6 (1998), with their alpha of 1. One who
 * reads nothing gets half of it at most, and however many there are, something is left for others.
 * What strangers make wait (bwk_peer_is_stranger()) has an alpha of a half, so that something is
 * left for peers whom the program knows, too.
 */
#ifndef BWK_OVERFLOW_H
#define BWK_OVERFLOW_H

#include "user.h"

/* May more of this user's wait, which a stranger has sent or not? All in any context. */
bool bwk_overflow_admits(const struct bwk_user *user, bool stranger);
void bwk_overflow_add(struct bwk_user *user, u32 bytes);
void bwk_overflow_sub(struct bwk_user *user, u32 bytes);

#endif
