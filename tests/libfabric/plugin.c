// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a plug-in of a collective library asks of libfabric: see plugin.h. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

#include "sides.h"

#define COMPLETIONS_ROOM 12288
#define OLDEST		 FI_VERSION(1, 6)
#define MAIL_ACCESS	 (FI_SEND | FI_RECV)
/* Options of later versions (libfabric 1.18) than the headers may be of. */
#define OPT_CUDA_API_PERMITTED	    10
#define OPT_SHARED_MEMORY_PERMITTED 11

static struct fi_info *hints_new(bool gpu)
{
	struct fi_info *hints = fi_allocinfo();

	SIDE_TRUE(hints);
	hints->caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->mr_key_size = 2;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	if (gpu) {
		hints->caps |= FI_HMEM | FI_RMA | FI_READ;
		hints->domain_attr->mr_mode |= FI_MR_HMEM;
	}
	return hints;
}

struct fi_info *plugin_devices(void)
{
	static const uint32_t versions[] = {FI_VERSION(1, 20), FI_VERSION(1, 18), OLDEST};
	struct fi_info *found = NULL, *hints = hints_new(true);

	/* Memory of GPUs first, as each version of libfabric would have it: nobody is to promise
	 * that who cannot do it. */
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (FI_VERSION_GE(fi_version(), versions[i]))
			SIDE_IS(fi_getinfo(versions[i], NULL, NULL, 0, hints, &found), -FI_ENODATA);
	}
	fi_freeinfo(hints);
	hints = hints_new(false);
	SIDE_IS(fi_getinfo(OLDEST, NULL, NULL, 0, hints, &found), 0);
	fi_freeinfo(hints);
	return found;
}

struct fid_mr *plugin_register(struct plugin *net, void *buf, size_t len)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = MAIL_ACCESS,
		.iface = FI_HMEM_SYSTEM,
	};
	struct fid_mr *mr;

	if (!(net->info->domain_attr->mr_mode & FI_MR_PROV_KEY))
		attr.requested_key = ++net->keys;
	SIDE_IS(fi_mr_regattr(net->domain, &attr, 0, &mr), 0);
	SIDE_TRUE(fi_mr_key(mr) != FI_KEY_NOTAVAIL);
	return mr;
}

void plugin_deregister(struct fid_mr *mr)
{
	SIDE_IS(fi_close(&mr->fid), 0);
}

static void mail_read(struct plugin_op *op, size_t len, int error);

static void mail_post(struct plugin_mail *mail)
{
	struct plugin *net = mail->net;

	mail->op.done = mail_read;
	memset(&mail->hello, 0, sizeof(mail->hello));
	SIDE_IS(fi_recv(net->connecting, &mail->hello, sizeof(mail->hello),
			fi_mr_desc(net->mail_mr), FI_ADDR_UNSPEC, &mail->op.context),
		0);
}

/* An answer ends who waits for it; who wants to connect waits to be accepted. */
static void mail_read(struct plugin_op *op, size_t len, int error)
{
	struct plugin_mail *mail = (struct plugin_mail *)op;
	const struct plugin_hello *hello = &mail->hello;
	struct plugin *net = mail->net;
	struct plugin_comm **at = &net->connects;

	SIDE_IS(error, 0);
	SIDE_IS(len, sizeof(*hello));
	while (*at && (*at)->number != hello->to)
		at = &(*at)->next;
	if (*at) {
		struct plugin_comm *comm = *at;

		*at = comm->next;
		comm->tag = hello->tag;
		SIDE_IS(fi_av_insert(net->av, hello->data, 1, &comm->peer, 0, NULL), 1);
		comm->answered = true;
	} else {
		SIDE_TRUE(hello->to < net->listeners);
		SIDE_TRUE(net->waits[hello->to] < PLUGIN_CONNECTS);
		net->waiting[hello->to][net->waits[hello->to]++] = *hello;
	}
	mail_post(mail);
}

/* All that has completed. */
static void plugin_progress(struct plugin *net)
{
	struct fi_cq_tagged_entry e[PLUGIN_COMPLETIONS];
	struct fi_cq_err_entry error = {0};
	struct plugin_op *op;
	ssize_t n;

	while ((n = fi_cq_read(net->cq, e, PLUGIN_COMPLETIONS)) != -FI_EAGAIN) {
		if (n == -FI_EAVAIL) {
			SIDE_IS(fi_cq_readerr(net->cq, &error, 0), 1);
			op = error.op_context;
			op->done(op, error.len, error.err);
			continue;
		}
		SIDE_TRUE(n > 0);
		for (ssize_t i = 0; i < n; i++) {
			op = e[i].op_context;
			op->done(op, e[i].flags & FI_RECV ? e[i].len : 0, 0);
		}
	}
}

static struct fid_ep *endpoint_new(struct plugin *net, struct fid_av *av)
{
	struct fid_ep *ep;
	bool no = false;
	int ret;

	SIDE_IS(fi_endpoint(net->domain, net->info, &ep, NULL), 0);
	SIDE_IS(fi_ep_bind(ep, &net->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	SIDE_IS(fi_ep_bind(ep, &av->fid, 0), 0);
	/* Whoever does not know an option says so, by one of these. */
	ret = fi_setopt(&ep->fid, FI_OPT_ENDPOINT, OPT_SHARED_MEMORY_PERMITTED, &no, sizeof(no));
	SIDE_TRUE(ret == 0 || ret == -FI_EOPNOTSUPP || ret == -FI_ENOPROTOOPT);
	ret = fi_setopt(&ep->fid, FI_OPT_ENDPOINT, OPT_CUDA_API_PERMITTED, &no, sizeof(no));
	SIDE_TRUE(ret == 0 || ret == -FI_EOPNOTSUPP || ret == -FI_ENOPROTOOPT);
	SIDE_IS(fi_enable(ep), 0);
	return ep;
}

static void name_of(struct fid_ep *ep, char name[PLUGIN_ADDRESS])
{
	size_t n = PLUGIN_ADDRESS;

	memset(name, 0, n);
	SIDE_IS(fi_getname(&ep->fid, name, &n), 0);
	SIDE_TRUE(n <= PLUGIN_ADDRESS);
}

void plugin_open(struct plugin *net, const struct fi_info *device)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = COMPLETIONS_ROOM};
	struct fi_av_attr av = {0};

	memset(net, 0, sizeof(*net));
	net->info = fi_dupinfo(device);
	SIDE_TRUE(net->info);
	SIDE_IS(fi_fabric(net->info->fabric_attr, &net->fabric, NULL), 0);
	SIDE_IS(fi_domain(net->fabric, net->info, &net->domain, NULL), 0);
	SIDE_IS(fi_cq_open(net->domain, &cq, &net->cq, NULL), 0);
	SIDE_IS(fi_av_open(net->domain, &av, &net->av, NULL), 0);
	net->ep = endpoint_new(net, net->av);
	SIDE_IS(fi_av_open(net->domain, &av, &net->connecting_av, NULL), 0);
	net->connecting = endpoint_new(net, net->connecting_av);
	net->mail_mr = plugin_register(net, net->mail, sizeof(net->mail));
	net->numbers = PLUGIN_LISTENERS;
	for (int i = 0; i < PLUGIN_CONNECTS; i++) {
		net->mail[i].net = net;
		mail_post(&net->mail[i]);
	}
}

void plugin_abort(struct plugin *net)
{
	SIDE_IS(fi_close(&net->ep->fid), 0);
	net->ep = NULL;
}

/* The receives of the connecting endpoint are still posted. */
void plugin_close(struct plugin *net)
{
	SIDE_IS(fi_close(&net->connecting->fid), 0);
	plugin_deregister(net->mail_mr);
	SIDE_IS(fi_close(&net->connecting_av->fid), 0);
	if (net->ep)
		plugin_abort(net);
	SIDE_IS(fi_close(&net->av->fid), 0);
	SIDE_IS(fi_close(&net->cq->fid), 0);
	SIDE_IS(fi_close(&net->domain->fid), 0);
	SIDE_IS(fi_close(&net->fabric->fid), 0);
	fi_freeinfo(net->info);
}

void plugin_listen(struct plugin *net, struct plugin_handle *handle)
{
	char own[PLUGIN_ADDRESS];
	fi_addr_t self;

	SIDE_TRUE(net->listeners < PLUGIN_LISTENERS);
	name_of(net->ep, own); /* for reads of one's own memory, if that is a GPU's */
	SIDE_IS(fi_av_insert(net->av, own, 1, &self, 0, NULL), 1);
	memset(handle, 0, sizeof(*handle));
	name_of(net->connecting, handle->connecting);
	handle->listener = net->listeners++;
}

static void hello_sent(struct plugin_op *op, size_t len, int error)
{
	struct plugin_comm *comm =
		(struct plugin_comm *)((char *)op - offsetof(struct plugin_comm, op));

	SIDE_IS(error, 0);
	comm->sent = true;
}

static struct plugin_comm *comm_new(struct plugin *net)
{
	struct plugin_comm *comm = calloc(1, sizeof(*comm));

	SIDE_TRUE(comm);
	comm->net = net;
	comm->op.done = hello_sent;
	comm->number = net->numbers++;
	comm->hello_mr = plugin_register(net, &comm->hello, sizeof(comm->hello));
	comm->hello.from = comm->number;
	name_of(net->ep, comm->hello.data);
	name_of(net->connecting, comm->hello.connecting);
	return comm;
}

/* Where there is no room for a message of connecting, room is made by what completes. */
static void hello_send(struct plugin_comm *comm, const char *to)
{
	struct plugin *net = comm->net;
	fi_addr_t addr;
	ssize_t ret;

	SIDE_IS(fi_av_insert(net->connecting_av, to, 1, &addr, 0, NULL), 1);
	while ((ret = fi_send(net->connecting, &comm->hello, sizeof(comm->hello),
			      fi_mr_desc(comm->hello_mr), addr, &comm->op.context)) == -FI_EAGAIN)
		plugin_progress(net);
	SIDE_IS(ret, 0);
}

struct plugin_comm *plugin_connect(struct plugin *net, const struct plugin_handle *handle)
{
	struct plugin_comm *comm = comm_new(net);

	comm->hello.to = handle->listener;
	comm->next = net->connects;
	net->connects = comm;
	hello_send(comm, handle->connecting);
	return comm;
}

bool plugin_connected(struct plugin_comm *comm)
{
	plugin_progress(comm->net);
	return comm->sent && comm->answered;
}

struct plugin_comm *plugin_accept(struct plugin *net, const struct plugin_handle *handle)
{
	uint32_t n = handle->listener;
	struct plugin_hello *hello = &net->waiting[n][0];
	struct plugin_comm *comm;

	plugin_progress(net);
	if (!net->waits[n])
		return NULL;
	comm = comm_new(net);
	SIDE_IS(fi_av_insert(net->av, hello->data, 1, &comm->peer, 0, NULL), 1);
	comm->tag = ++net->tags;
	comm->hello.tag = comm->tag;
	comm->hello.to = hello->from;
	comm->answered = true;
	hello_send(comm, hello->connecting);
	memmove(hello, hello + 1, --net->waits[n] * sizeof(*hello));
	return comm;
}

/* An answer may still be on its way: its completion is waited for, but not what it does there. */
void plugin_comm_close(struct plugin_comm *comm)
{
	while (!comm->sent)
		plugin_progress(comm->net);
	plugin_deregister(comm->hello_mr);
	free(comm);
}

static void request_over(struct plugin_op *op, size_t len, int error)
{
	struct plugin_request *request = (struct plugin_request *)op;

	SIDE_TRUE(request->used && !request->over);
	request->over = true;
	request->error = error;
	request->len = len;
}

static struct plugin_request *request_new(struct plugin_comm *comm)
{
	for (int i = 0; i < PLUGIN_REQUESTS; i++) {
		struct plugin_request *request = &comm->request[i];

		if (request->used)
			continue;
		*request = (struct plugin_request){.comm = comm, .used = true};
		request->op.done = request_over;
		return request;
	}
	return NULL;
}

struct plugin_request *plugin_send(struct plugin_comm *comm, const void *buf, size_t len,
				   struct fid_mr *mr)
{
	struct plugin_request *request = request_new(comm);
	ssize_t ret;

	if (!request)
		return NULL;
	ret = fi_tsend(comm->net->ep, buf, len, fi_mr_desc(mr), comm->peer, comm->tag,
		       &request->op.context);
	if (ret == 0)
		return request;
	SIDE_IS(ret, -FI_EAGAIN);
	request->used = false;
	plugin_progress(comm->net);
	return NULL;
}

struct plugin_request *plugin_receive(struct plugin_comm *comm, void *buf, size_t len,
				      struct fid_mr *mr)
{
	struct plugin_request *request = request_new(comm);
	ssize_t ret;

	if (!request)
		return NULL;
	plugin_progress(comm->net);
	ret = fi_trecv(comm->net->ep, buf, len, fi_mr_desc(mr), FI_ADDR_UNSPEC, comm->tag, 0,
		       &request->op.context);
	if (ret == 0)
		return request;
	SIDE_IS(ret, -FI_EAGAIN);
	request->used = false;
	return NULL;
}

bool plugin_test(struct plugin_request *request, size_t *len)
{
	if (!request->over)
		plugin_progress(request->comm->net);
	if (!request->over)
		return false;
	SIDE_IS(request->error, 0);
	*len = request->len;
	request->used = false;
	return true;
}
