/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside beowire-pingpong: a way to carry messages between the two programs (libbeowire, TCP, bare
 * frames) is a struct pp_carrier, so that all are measured by the same loops, in turn, in one run.
 */
#ifndef BW_PINGPONG_H
#define BW_PINGPONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PP_PORT	      "47099"
#define PP_CARRIERS   3
#define PP_SIZES_MAX  32
#define PP_SIZE_MAX   (64u << 20) /* bytes of a message */
#define PP_ROUND_MAX  10000000	  /* messages in a round */
#define PP_WINDOW_MAX 4096
#define PP_BUFFER_MAX (1ul << 30) /* bytes of TCP's receive buffer */
#define PP_LINE	      512	  /* bytes of a line on the control connection */
#define PP_CARD_BYTES 64
#define PP_TEXT	      256
#define PP_REHEARSALS 10 /* exchanges that tell how long an answer takes */
#define PP_IDLE_MAX   1000
#define PP_STUCK_NS   60000000000ull /* nothing comes for so long: give up, as an engine does */

enum pp_wait { PP_SPIN, PP_BLOCK, PP_ADAPTIVE };
enum pp_mode {
	PP_LATENCY,
	PP_BANDWIDTH,
	PP_RATE,
	PP_SEND,    /* the time in the call that sends */
	PP_RECEIVE, /* the time in the call that receives what is there already */
	PP_MODES
};
extern const char *const pp_wait_name[], *const pp_mode_name[];

struct pp_options {
	const char *host; /* NULL: be the server */
	const char *port, *json, *interface;
	bool chosen[PP_CARRIERS];
	bool modes[PP_MODES];
	enum pp_wait wait;
	size_t size[PP_SIZES_MAX];
	unsigned int sizes;
	unsigned long rounds, iterations, window;
	unsigned long receive_buffer; /* bytes of TCP's, on both sides; 0: as the kernel does */
	unsigned long idle;	      /* endpoints of libbeowire that do nothing, on each side */
	bool once;
};
extern struct pp_options pp_opt;

/* How the other side reaches us; each carrier fills it in its own way. */
struct pp_card {
	uint8_t bytes[PP_CARD_BYTES];
};

/* What a carrier needs to know to open. */
struct pp_place {
	enum pp_wait wait;
	int control;	       /* the connection between the two programs */
	const char *interface; /* for bare frames; NULL: the one that the control connection uses */
	bool client;
	unsigned long receive_buffer; /* as in the options, of both sides */
	unsigned long idle;	      /* likewise */
};

/* All functions return 0 or -1, then with pp_error set. Messages are delivered in order. */
struct pp_carrier {
	const char *name;
	void *(*open)(const struct pp_place *place, struct pp_card *mine); /* NULL on failure */
	int (*meet)(void *state, const struct pp_card *theirs);
	int (*send)(void *state, const void *buf, size_t n);
	/* Wait until one more message of n bytes has arrived in buf. */
	int (*receive)(void *state, void *buf, size_t n);
	/* Wait until all that was sent may be overwritten. */
	int (*flush)(void *state);
	/* How the messages travel, for people. */
	void (*describe)(void *state, char text[PP_TEXT]);
	void (*close)(void *state);
};

extern const struct pp_carrier pp_beowire, pp_tcp, pp_packet;
extern const struct pp_carrier *const pp_carriers[PP_CARRIERS];
extern void *pp_state[PP_CARRIERS];   /* of the carriers that are open */
extern uint8_t *pp_buffer, *pp_inbox; /* PP_SIZE_MAX bytes each, for all messages */

/* The last error, for people. pp_fail() sets it and returns -1. */
extern char pp_error[PP_TEXT];
__attribute__((format(printf, 1, 2))) int pp_fail(const char *format, ...);

uint64_t pp_now(void);

/* Whether a mode's samples are times of single messages. */
static inline bool pp_timed(enum pp_mode mode)
{
	return mode == PP_LATENCY || mode == PP_SEND || mode == PP_RECEIVE;
}

/* control.c */
struct pp_control {
	int fd;
	FILE *in, *out;
};
int pp_control_init(struct pp_control *c, int fd);
void pp_control_close(struct pp_control *c);
__attribute__((format(printf, 2, 3))) int pp_say(struct pp_control *c, const char *format, ...);
int pp_line(struct pp_control *c, char line[PP_LINE]);
int pp_hear(struct pp_control *c, char line[PP_LINE]);
void pp_card_print(const struct pp_card *card, char text[2 * PP_CARD_BYTES + 1]);
int pp_card_scan(const char *text, struct pp_card *card);
/* A descriptor or -1. */
int pp_listen(const char *port);
int pp_dial(const char *host, const char *port);

/* server.c: the loops that both sides run, and the server */
int pp_exchange(int i, bool client, size_t size, unsigned long count, uint64_t *sample);
int pp_overhead(int i, enum pp_mode mode, size_t size, unsigned long count, uint64_t *sample);
int pp_stream(int i, bool client, size_t size, unsigned long count, unsigned long window);
int pp_carrier_index(const char *name);
void pp_carriers_close(void);
int pp_server(void);

/* stats.c: figures of one carrier, size and mode */
struct pp_figures {
	uint64_t
		*sample; /* nanoseconds, sorted by pp_figures_sort(); of modes that time messages */
	size_t samples;
	double *round; /* per round: median latency in ns, or bytes or messages per second */
	size_t rounds;
};

bool pp_figures_init(struct pp_figures *f, size_t samples, size_t rounds);
void pp_figures_free(struct pp_figures *f);
void pp_figures_sort(struct pp_figures *f);
/* The sample below which this share of all lies. */
uint64_t pp_percentile(const struct pp_figures *f, double share);
double pp_median(const double *x, size_t n);
uint64_t pp_median_u64(uint64_t *x, size_t n);

/* A median and the order statistics around it that hold the true one with 95 % confidence (the
 * whole range if there are too few values). */
struct pp_interval {
	double median, low, high;
};
/* Of a[i] / b[i]. */
struct pp_interval pp_ratio(const double *a, const double *b, size_t n);

/* report.c: the table for people and the JSON for machines */
struct pp_report {
	FILE *json; /* NULL: none */
	bool more;  /* a result was written before */
};
int pp_report_begin(struct pp_report *r);
void pp_report_add(struct pp_report *r, enum pp_mode mode, size_t size,
		   const struct pp_figures f[PP_CARRIERS]);
int pp_report_end(struct pp_report *r);

#endif
