/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of any content against the libfabric provider, while it has receives posted, operations
 * of its own under way and memory registered that comes and goes. A script is a row of steps, so
 * that what one message leaves behind meets the next.
 */
#include <stdlib.h>

#include "bwf.h"
#include "fake_beowire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REGIONS 3
#define BUFFERS 64

static const size_t region_len[REGIONS] = {64, 4096, 40000};
static const uint64_t region_access[REGIONS] = {FI_REMOTE_READ | FI_REMOTE_WRITE,
						FI_REMOTE_READ | FI_REMOTE_WRITE, FI_REMOTE_READ};

/* What a program has opened. */
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_av *av;
static struct fid_mr *mr[REGIONS];
static uint8_t *region[REGIONS];
/* What operations were given; it stays until the endpoint is closed. */
static uint8_t *buffer[BUFFERS];
static uint32_t buffers;

static void must(long ret)
{
	if (ret < 0)
		fuzz_bad("a call of libfabric failed that cannot fail");
}

static void region_open(int i)
{
	region[i] = malloc(region_len[i]);
	memset(region[i], 0, region_len[i]);
	must(fi_mr_reg(domain, region[i], region_len[i], region_access[i], 0, (uint64_t)i, 0,
		       &mr[i], NULL));
}

/* After that nobody may touch its memory. */
static void region_close(int i)
{
	must(fi_close(&mr[i]->fid));
	free(region[i]);
}

static void open_all(void)
{
	static struct fi_info *info;
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	if (!info)
		must(bwf_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
	info->caps |= FI_SOURCE | FI_DIRECTED_RECV;
	info->domain_attr->mr_mode = 0;
	must(bwf_fabric_open(info->fabric_attr, &fabric, NULL));
	must(fi_domain(fabric, info, &domain, NULL));
	must(fi_endpoint(domain, info, &ep, NULL));
	must(fi_cq_open(domain, &cq_attr, &cq, NULL));
	must(fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	must(fi_av_open(domain, &av_attr, &av, NULL));
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_ep_bind(ep, &cntr->fid, FI_REMOTE_WRITE | FI_REMOTE_READ | FI_WRITE));
	must(fi_ep_bind(ep, &av->fid, 0));
	must(fi_enable(ep));
	for (uint8_t i = 1; i < FAKE_PEERS; i++) {
		struct bw_addr addr = {.bytes = {i}};

		must(fi_av_insert(av, &addr, 1, NULL, 0, NULL));
	}
	for (int i = 0; i < REGIONS; i++)
		region_open(i);
}

/* What has ended is the program's again. False if there was nothing. */
static bool completion(void)
{
	struct fi_cq_tagged_entry entry = {0};
	struct fi_cq_err_entry error = {0};
	ssize_t n = fi_cq_read(cq, &entry, 1);

	if (n == -FI_EAVAIL) {
		must(fi_cq_readerr(cq, &error, 0));
		entry.op_context = error.op_context;
	}
	if (n != -FI_EAGAIN && fake_uses(entry.op_context))
		fuzz_bad("an operation has ended while its memory is in use");
	return n != -FI_EAGAIN;
}

static void close_all(void)
{
	for (bw_peer_no i = 0; i < FAKE_PEERS; i++)
		fake_lose(i, -ESHUTDOWN);
	while (completion())
		;
	for (int i = 0; i < REGIONS; i++)
		region_close(i);
	must(fi_close(&ep->fid));
	must(fi_close(&cq->fid));
	must(fi_close(&cntr->fid));
	must(fi_close(&av->fid));
	must(fi_close(&domain->fid));
	must(fi_close(&fabric->fid));
	while (buffers)
		free(buffer[--buffers]);
}

static void *buffer_new(size_t n)
{
	if (buffers == BUFFERS)
		return NULL;
	buffer[buffers] = calloc(1, n + !n);
	return buffer[buffers++];
}

static size_t segments(struct fuzz_input *in, uint8_t *to, uint32_t n, uint64_t unit,
		       uint64_t *total)
{
	for (uint32_t i = 0; i < n; i++) {
		struct bwf_segment s = {.key = fuzz_u8(in) % (REGIONS + 1)};

		s.addr = fuzz_number(in);
		s.len = fuzz_number(in);
		*total += s.len * unit;
		memcpy(to + i * sizeof(s), &s, sizeof(s));
	}
	return n * sizeof(struct bwf_segment);
}

/* The request of a write, right but for what the script wants wrong. Bytes of it. */
static size_t write_request(struct fuzz_input *in, uint8_t *to)
{
	uint8_t how = fuzz_u8(in);
	struct bwf_write_request req = {
		.token = how & 3, .data = 7, .flags = how >> 2 & 1, .segments = how >> 3 & 7};
	size_t n = sizeof(req) + segments(in, to + sizeof(req), req.segments, 1, &req.len);

	if (how & 0x40)
		req.len = fuzz_number(in);
	memcpy(to, &req, sizeof(req));
	return how & 0x80 || req.len > 2048 ? n : n + req.len;
}

static size_t atomic_request(struct fuzz_input *in, uint8_t *to)
{
	uint8_t how = fuzz_u8(in), what = fuzz_u8(in);
	struct bwf_atomic_request req = {
		.token = 1, .data = 7, .flags = how & 1, .segments = how >> 1 & 7};
	uint64_t elements = 0;
	size_t n = sizeof(req) + segments(in, to + sizeof(req), req.segments, 1, &elements);
	size_t size;

	req.type = what % 20;
	req.op = fuzz_u8(in) % 24;
	req.kind = (how >> 4) % 4;
	req.count = how & 0x80 ? (uint32_t)fuzz_number(in) : (uint32_t)elements;
	memcpy(to, &req, sizeof(req));
	size = bwf_atomic_size(req.type, req.op, req.kind) * (elements % 1024);
	if (req.op != FI_ATOMIC_READ)
		n += size;
	return req.kind == BWF_ATOMIC_COMPARE ? n + size : n;
}

static void step_message(struct fuzz_input *in)
{
	static uint8_t bytes[65536];
	uint8_t how = fuzz_u8(in), raw = fuzz_u8(in);
	struct bw_message m = {
		.peer = how & 8 ? 1 : how % FAKE_PEERS,
		.code = raw & 0x30 ? (raw & 0x40) | (1 + raw % 8) : raw & 0x7F,
		.tag = how >> 5 & 3,
		.imm = fuzz_number(in),
		.envelope = raw & 0x80,
		.data = bytes,
	};
	uint32_t given = 64;
	const uint8_t *from;

	memset(bytes, 0, 4096);
	switch (m.code & BWF_CODE_MASK) {
	case BWF_CODE_WRITE:
	case BWF_CODE_WRITE_LONG:
		m.len = write_request(in, bytes);
		break;
	case BWF_CODE_ATOMIC:
		m.len = atomic_request(in, bytes);
		break;
	case BWF_CODE_WRITE_DONE:
	case BWF_CODE_ATOMIC_DONE:
		m.tag = fake_token(fuzz_u8(in));
		m.imm = fuzz_u8(in) % 3 ? 0 : m.imm;
		m.len = fuzz_u16(in);
		break;
	default:
		m.len = fuzz_number(in);
	}
	if (how & 0x80) { /* as the script says, whatever it should be */
		from = fuzz_bytes(in, &given);
		memcpy(bytes, from, given);
		m.len = given;
	}
	if (m.envelope)
		m.rndv.word[0] = fuzz_u8(in) % 4;
	else
		m.len %= sizeof(bytes) + 1;
	fake_deliver(&m);
}

static void step_receive(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	struct iovec iov[BWF_IOV_MAX];
	size_t n = how & 1 ? 1 : fuzz_u8(in) % (BWF_IOV_MAX + 1);
	fi_addr_t from = how & 2 ? FI_ADDR_UNSPEC : fuzz_u8(in) % FAKE_PEERS;
	struct fi_msg msg = {.msg_iov = iov, .iov_count = n, .addr = from, .context = buffer};
	struct fi_msg_tagged tagged = {.msg_iov = iov,
				       .iov_count = n,
				       .addr = from,
				       .context = buffer,
				       .tag = how >> 4 & 3,
				       .ignore = how & 0x40 ? UINT64_MAX : 0};

	for (size_t i = 0; i < n; i++) {
		iov[i].iov_len = fuzz_u16(in) % 20000;
		iov[i].iov_base = buffer_new(iov[i].iov_len);
		if (!iov[i].iov_base)
			return;
	}
	if (how & 0x80)
		fi_trecvmsg(ep, &tagged, how & 8 ? FI_PEEK | (how & 4 ? FI_CLAIM : FI_DISCARD) : 0);
	else
		fi_recvmsg(ep, &msg, how & 8 ? FI_MULTI_RECV : 0);
}

static void step_operation(struct fuzz_input *in)
{
	uint8_t how = fuzz_u8(in);
	fi_addr_t to = fuzz_u8(in) % (FAKE_PEERS - 1);
	size_t n = fuzz_u16(in);
	uint8_t *from = buffer_new(n), *result = from ? buffer_new(n) : NULL;

	if (!result)
		return;
	switch (how & 7) {
	case 0:
		fi_send(ep, from, n, NULL, to, from);
		break;
	case 1:
		fi_tinject(ep, from, n, to, 3);
		break;
	case 2:
		fi_write(ep, from, n, NULL, to, 0, 1, from);
		break;
	case 3:
		fi_inject_write(ep, from, n, to, 0, 1);
		break;
	case 4:
		fi_read(ep, from, n, NULL, to, 0, 1, from);
		break;
	case 5:
		fi_fetch_atomic(ep, from, n / 8, NULL, result, NULL, to, 0, 1, FI_UINT64, FI_SUM,
				from);
		break;
	case 6:
		fi_compare_atomic(ep, from, n / 8, NULL, from, NULL, result, NULL, to, 0, 1,
				  FI_UINT64, FI_CSWAP, from);
		break;
	default:
		fi_cancel(&ep->fid, how & 8 ? (void *)buffer : from);
	}
}

/* A peer reads memory: what is granted is all there. */
static void step_region(struct fuzz_input *in)
{
	uint64_t key = fuzz_u8(in) % (REGIONS + 1), off = fuzz_number(in), n = fuzz_number(in);
	const uint8_t *at = bwf_handlers.region(BWF_OF(ep, struct bwf_ep, face.fid),
						fuzz_u8(in) % FAKE_PEERS, key, off, n);

	if (at && (key >= REGIONS || off > region_len[key] || n > region_len[key] - off ||
		   at != region[key] + off))
		fuzz_bad("memory granted that is not registered");
}

static void step(struct fuzz_input *in)
{
	static const int ends[4] = {0, 0, -EFAULT, -ECANCELED};
	uint8_t what = fuzz_u8(in), at;

	switch (what & 15) {
	case 0:
		fake_mood(what >> 4 | (fuzz_u8(in) & 1) << 4);
		break;
	case 1:
		fake_lose(fuzz_u8(in) % FAKE_PEERS, what & 0x10 ? -ETIMEDOUT : -ESHUTDOWN);
		break;
	case 2:
		at = (what >> 4) % REGIONS;
		region_close(at);
		region_open(at);
		break;
	case 3:
		completion();
		break;
	case 4:
		step_region(in);
		break;
	case 5:
	case 6:
		step_receive(in);
		break;
	case 7:
	case 8:
		step_operation(in);
		break;
	case 9:
	case 10:
		fake_end(fuzz_u8(in), ends[what >> 4 & 3]);
		break;
	default:
		step_message(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	int steps = 0;

	open_all();
	while (in.at < in.end && steps++ < 400)
		step(&in);
	while (completion())
		;
	close_all();
	return 0;
}
