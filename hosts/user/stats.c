/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters as JSON. The file of BEOWIRE_STATS appears under its name only when it is complete, so
 * that a tool never reads half of one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claim.h"
#include "ep.h"
#include "stats.h"

static void bw_stats_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		if ((unsigned char)*s >= 0x20)
			fputc(*s, f);
	}
	fputc('"', f);
}

static void bw_stats_link(FILE *f, const char *name, const struct bw_link_counters *c, bool more)
{
	fprintf(f,
		"\"%s\":{\"tx_frames\":%llu,\"rx_frames\":%llu,\"tx_bytes\":%llu,\"rx_bytes\":%llu,"
		"\"tx_payload\":%llu,\"rx_payload\":%llu,\"rx_overruns\":%llu}%s",
		name, (unsigned long long)c->tx_frames, (unsigned long long)c->rx_frames,
		(unsigned long long)c->tx_bytes, (unsigned long long)c->rx_bytes,
		(unsigned long long)c->tx_payload, (unsigned long long)c->rx_payload,
		(unsigned long long)c->rx_overruns, more ? "," : "");
}

static void bw_stats_local(const struct bw_ep *ep, struct bw_stats_sums *s)
{
	const struct bw_local_counters *l = bw_local_counters(ep->local);
	struct bw_link_counters *c = &s->local;

	c->tx_frames = l->tx_frames;
	c->rx_frames = l->rx_frames;
	c->tx_bytes = l->tx_bytes;
	c->rx_bytes = l->rx_bytes;
	c->tx_payload = l->tx_payload;
	c->rx_payload = l->rx_payload;
	s->turned_away = l->turned_away;
	s->broken = l->broken;
}

static void bw_stats_add(struct bw_link_counters *sum, const struct bw_link_counters *c)
{
	sum->tx_frames += c->tx_frames;
	sum->rx_frames += c->rx_frames;
	sum->tx_bytes += c->tx_bytes;
	sum->rx_bytes += c->rx_bytes;
	sum->tx_payload += c->tx_payload;
	sum->rx_payload += c->rx_payload;
	sum->rx_overruns += c->rx_overruns;
}

void bw_stats_sum(struct bw_ep *ep, struct bw_stats_sums *s)
{
	*s = (struct bw_stats_sums){.engine = *bw_reliable.counters(ep->engine)};
	s->engine.drop[BW_DROP_FOREIGN] += ep->watch.foreign;
	for (int i = 0; i < ep->packets; i++) {
		bw_packet_overruns(&ep->packet[i]);
		s->packet_rx_rows += ep->packet[i].rx_rows;
		s->packet_rx_row_frames += ep->packet[i].rx_row_frames;
		bw_stats_add(&s->packet, &ep->packet[i].count);
		s->send_errors += ep->packet[i].batch->errors;
	}
	if (ep->has_udp) {
		bw_udp_overruns(&ep->udp);
		s->udp = ep->udp.count;
		s->send_errors += ep->udp.batch->errors;
	}
	if (ep->local)
		bw_stats_local(ep, s);
	if (ep->kernel)
		bw_kernel_counters(ep->kernel, &s->engine, &s->kernel);
	s->overruns = s->packet.rx_overruns + s->udp.rx_overruns;
}

void bw_count_event(struct bw_ep *ep, enum bw_count what)
{
	atomic_fetch_add_explicit(&ep->counts[what], 1, memory_order_relaxed);
}

static uint64_t bw_stats_count(const struct bw_ep *ep, enum bw_count what)
{
	return atomic_load_explicit(&ep->counts[what], memory_order_relaxed);
}

static void bw_stats_interfaces(FILE *f, const struct bw_ep *ep)
{
	fprintf(f, "\"interfaces\":{");
	for (int i = 0; i < ep->packets; i++)
		bw_stats_link(f, ep->packet[i].name, &ep->packet[i].count, i + 1 < ep->packets);
	fprintf(f, "},");
}

static void bw_stats_drops(FILE *f, const struct bw_stats_sums *sums)
{
	fprintf(f, "\"drops\":{");
	for (int why = 1; why < BW_DROP_REASONS; why++)
		fprintf(f, "\"%s\":%llu,", bw_drop_name((enum bw_drop)why),
			(unsigned long long)sums->engine.drop[why]);
	fprintf(f, "\"overrun\":%llu,\"send_error\":%llu}", (unsigned long long)sums->overruns,
		(unsigned long long)sums->send_errors);
}

void bw_stats_print(struct bw_ep *ep, FILE *f)
{
	struct bw_stats_sums sums;
	const struct bw_counters *c = &sums.engine;

	bw_stats_sum(ep, &sums);
	const struct {
		const char *name;
		uint64_t value;
	} plain[] = {
		{"retransmits", c->retransmits},
		{"acks_tx", c->acks_tx},
		{"acks_rx", c->acks_rx},
		{"tx_messages", c->tx_messages},
		{"rx_messages", c->rx_messages},
		{"tx_copies", ep->copies.taken},
		{"rx_early", ep->early},
		{"rx_placed", ep->placed},
		{"packet_rx_rows", sums.packet_rx_rows},
		{"packet_rx_row_frames", sums.packet_rx_row_frames},
		{"udp_tx_rows", ep->has_udp ? ep->udp.batch->rows : 0},
		{"udp_tx_row_frames", ep->has_udp ? ep->udp.batch->row_frames : 0},
		{"udp_rx_rows", ep->udp.rx_rows},
		{"udp_connects", ep->udp.connects},
		{"udp_tx_connected", ep->udp.tx_connected},
		{"udp_rx_connected", ep->udp.rx_connected},
		{"duplex_payload", c->duplex_payload},
		{"duplex_messages", c->duplex_messages},
		{"tx_pulls", c->tx_pulls},
		{"rx_pulls", c->rx_pulls},
		{"losses", c->losses},
		{"probes", c->probes},
		{"spurious", c->spurious},
		{"marks_rx", c->marks_rx},
		{"backoffs", c->backoffs},
		{"refusals_tx", c->refusals_tx + ep->watch.refused},
		{"refusals_rx", c->refusals_rx},
		{"challenges_tx", c->challenges_tx},
		{"challenges_rx", c->challenges_rx},
		{"evicted", c->evicted},
		{"keyed", ep->keyed},
		{"encrypted", ep->env.encrypt},
		{"credit_stalls", c->credit_stalls},
		{"local_turned_away", sums.turned_away},
		{"local_broken", sums.broken},
		{"fanout_links", bw_fanout_joined(ep)},
		{"strangers", bw_claim_strangers()},
		{"stale_peers", ep->stale_peers},
		{"ghosts_gone", ep->remotes.ghosts_gone},
		{"callers_refused", ep->remotes.callers_refused},
		{"unread_dropped", bw_stats_count(ep, BW_COUNT_UNREAD_DROPPED)},
		{"name_drops", bw_stats_count(ep, BW_COUNT_NAME_DROPS)},
		{"key_guesses", bw_stats_count(ep, BW_COUNT_KEY_GUESSES)},
		{"writes_refused", bw_stats_count(ep, BW_COUNT_WRITES_REFUSED)},
		{"peers_given_up", bw_stats_count(ep, BW_COUNT_PEERS_GIVEN_UP)},
		{"messages_lost", bw_stats_count(ep, BW_COUNT_MESSAGES_LOST)},
		{"malformed", bw_stats_count(ep, BW_COUNT_MALFORMED)},
		{"rounds", ep->rounds},
		{"yields", ep->yields},
		{"naps", ep->naps},
		{"memory_bytes", ep->buffers.bytes + ep->grown_bytes},
	};
	fprintf(f, "{\"host\":");
	bw_stats_string(f, ep->host);
	fprintf(f, ",\"pid\":%d,\"node\":\"%016llx\",\"engine\":%u,\"interface\":", (int)getpid(),
		(unsigned long long)ep->self.node, ep->self.engine);
	bw_stats_string(f, ep->kernel	    ? bw_kernel_interface(ep->kernel)
			   : ep->has_packet ? ep->iface.name
					    : "");
	fprintf(f, ",\"links\":{");
	bw_stats_link(f, "packet", &sums.packet, true);
	bw_stats_link(f, "udp", &sums.udp, true);
	bw_stats_link(f, "local", &sums.local, true);
	bw_stats_link(f, "kernel", &sums.kernel, false);
	fprintf(f, "},");
	bw_stats_interfaces(f, ep);
	bw_stats_drops(f, &sums);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		fprintf(f, ",\"%s\":%llu", plain[i].name, (unsigned long long)plain[i].value);
	fprintf(f, ",\"peers\":%u}", ep->remotes.count - ep->remotes.vacant);
}

char *bw_ep_stats(struct bw_ep *ep)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	bw_lock_take(&ep->lock);
	if (!ep->dead)
		bw_stats_print(ep, f);
	bw_lock_release(&ep->lock);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* A new file, which nobody else has prepared: the directory may be everybody's, and the name can be
 * guessed. What an earlier process of this number left goes. */
static FILE *bw_stats_create(const char *path)
{
	FILE *f;
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return NULL;
	f = fdopen(fd, "w");
	if (!f)
		close(fd);
	return f;
}

/* False, and errno, if that is not possible. */
static bool bw_stats_save(struct bw_ep *ep, const char *path, const char *part)
{
	FILE *f = bw_stats_create(part);
	int error = 0;

	if (!f)
		return false;
	bw_stats_print(ep, f);
	fputc('\n', f);
	if (ferror(f))
		error = EIO;
	if (fclose(f))
		error = errno;
	if (!error && rename(part, path))
		error = errno;
	if (error)
		unlink(part);
	errno = error;
	return !error;
}

void bw_stats_write(struct bw_ep *ep)
{
	char path[PATH_MAX], part[PATH_MAX + 8];
	int n;

	if (!ep->env.stats_dir)
		return;
	n = snprintf(path, sizeof(path), "%s/%s-%d-%u.json", ep->env.stats_dir, ep->host,
		     (int)getpid(), ep->serial);
	snprintf(part, sizeof(part), "%s.part", path);
	errno = ENAMETOOLONG;
	if (n >= (int)sizeof(path) || !bw_stats_save(ep, path, part))
		bw_log(BW_LOG_ERROR,
		       "cannot write the counters to %s: %s; the run itself is not affected", path,
		       strerror(errno));
}
