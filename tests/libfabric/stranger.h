/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A third endpoint beside the two of pair.h, one of libbeowire, which says what no provider says
 * and takes what it likes.
 */
#ifndef STRANGER_H
#define STRANGER_H

#include "beowire.h"
#include "codes.h"
#include "pair.h"

#define LONG	    (1 << 20)
#define KEY	    7
#define SEEN_MAX    4096
#define SHORT_BYTES 64

/* What the stranger was sent. */
struct seen {
	struct bw_message m; /* without data */
	char data[SHORT_BYTES];
};

extern const struct bw_handlers stranger_handlers; /* they fill in what follows */
extern struct bw_ep *bad;
extern bw_peer_no victim; /* b, as `bad` knows it */
extern struct seen seen[SEEN_MAX];
extern size_t seen_count;
extern int sent_count, pulled_count, pulled_status; /* the last one's */
extern fi_addr_t bad_addr;			    /* `bad`, as b knows it */
extern struct fid_mr *mr;			    /* `theirs`, under KEY */
extern char *theirs, *mine;

int stranger_setup(void **state);
/* An honest write still arrives; then all ends well. */
int stranger_teardown(void **state);
/* When all has ended, b's counters say this; looked at unless BEOWIRE_STATS names a directory. */
void stranger_counts(const char *name, uint64_t value);
/* Drive all three. */
void stranger_progress(void);
/* Send to b, however long it takes until there is room. */
void stranger_say(uint8_t code, uint64_t tag, uint64_t imm, const void *buf, size_t len);

#endif
