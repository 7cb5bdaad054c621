/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stand-in for the plug-in by which collective libraries of GPUs (NCCL, RCCL) use libfabric, with
 * the calls that its protocol of sends and receives makes, in its order: a domain for each
 * interface; in it an endpoint for data and one for connecting, each with an address vector of its
 * own, both bound to one completion queue; communicators of one direction that are told apart by a
 * tag; registered memory. Every call must succeed.
 */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PLUGIN_ADDRESS = 56,  /* bytes that it has room for in an endpoint's address */
	PLUGIN_REQUESTS = 32, /* requests under way in one communicator */
	PLUGIN_LISTENERS = 8,
	PLUGIN_CONNECTS = 16,  /* receives posted for messages of connecting */
	PLUGIN_COMPLETIONS = 4 /* read at once */
};

struct plugin;

/* What the completion of a call names. `done` is called once. */
struct plugin_op {
	struct fi_context2 context; /* what libfabric is given */
	void (*done)(struct plugin_op *op, size_t len, int error);
};

/* What one side tells the other while they connect. */
struct plugin_hello {
	char connecting[PLUGIN_ADDRESS]; /* the endpoint that the answer is to go to */
	char data[PLUGIN_ADDRESS];	 /* the endpoint for data */
	uint32_t from, to;		 /* numbers of who speaks, and of who is meant */
	uint64_t tag;
};

/* What the listener gives away, by other means than libfabric's. */
struct plugin_handle {
	char connecting[PLUGIN_ADDRESS];
	uint32_t listener;
};

struct plugin_request {
	struct plugin_op op;
	struct plugin_comm *comm;
	bool used, over;
	size_t len; /* bytes sent or received, once it is over */
	int error;
};

/* One direction between two endpoints. */
struct plugin_comm {
	struct plugin *net;
	struct plugin_op op;
	struct plugin_hello hello;
	struct fid_mr *hello_mr;
	bool sent, answered; /* the message of connecting; the other side's answer */
	fi_addr_t peer;
	uint64_t tag;
	uint32_t number;
	struct plugin_request request[PLUGIN_REQUESTS];
	struct plugin_comm *next;
};

/* A receive for a message of connecting. */
struct plugin_mail {
	struct plugin_op op;
	struct plugin *net;
	struct plugin_hello hello;
};

struct plugin {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av, *connecting_av;
	struct fid_ep *ep, *connecting;
	struct fid_mr *mail_mr;
	struct plugin_mail mail[PLUGIN_CONNECTS];
	/* messages of connecting that nobody has accepted yet, by listener */
	struct plugin_hello waiting[PLUGIN_LISTENERS][PLUGIN_CONNECTS];
	uint32_t waits[PLUGIN_LISTENERS];
	uint32_t listeners, numbers;
	uint64_t tags;
	uint64_t keys;
	struct plugin_comm *connects; /* wait for their answer */
};

/* What fi_getinfo() offers to the plug-in: its list, to be freed. */
struct fi_info *plugin_devices(void);
void plugin_open(struct plugin *net, const struct fi_info *device);
/* End with requests under way: none completes any more, and their memory is the caller's again. */
void plugin_abort(struct plugin *net);
/* Everything else is closed before. */
void plugin_close(struct plugin *net);

void plugin_listen(struct plugin *net, struct plugin_handle *handle);
/* Begin; then ask, until it is true. */
struct plugin_comm *plugin_connect(struct plugin *net, const struct plugin_handle *handle);
bool plugin_connected(struct plugin_comm *comm);
/* NULL: nobody has connected yet. */
struct plugin_comm *plugin_accept(struct plugin *net, const struct plugin_handle *handle);
void plugin_comm_close(struct plugin_comm *comm);

struct fid_mr *plugin_register(struct plugin *net, void *buf, size_t len);
void plugin_deregister(struct fid_mr *mr);

/* NULL: not now. */
struct plugin_request *plugin_send(struct plugin_comm *comm, const void *buf, size_t len,
				   struct fid_mr *mr);
struct plugin_request *plugin_receive(struct plugin_comm *comm, void *buf, size_t len,
				      struct fid_mr *mr);
/* Is it over? It is free then. */
bool plugin_test(struct plugin_request *request, size_t *len);

#endif
