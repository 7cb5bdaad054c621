// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Negotiation: what fi_getinfo() grants, echoes and refuses, and endpoints found by node and
 * service.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static struct fi_info *hints;

static int setup(void **state)
{
	hints = pair_hints();
	return 0;
}

static int teardown(void **state)
{
	fi_freeinfo(hints);
	return 0;
}

static struct fi_info *granted(uint32_t version)
{
	struct fi_info *info;

	assert_int_equal(fi_getinfo(version, NULL, NULL, 0, hints, &info), 0);
	return info;
}

static void refused(uint32_t version)
{
	struct fi_info *info;

	assert_int_equal(fi_getinfo(version, NULL, NULL, 0, hints, &info), -FI_ENODATA);
}

#define NEW FI_VERSION(1, 17)

static void caps__what_is_asked_for_and_no_other_primary_ones(void **state)
{
	struct fi_info *info;

	hints->caps = FI_TAGGED;
	info = granted(NEW);
	assert_int_equal(info->caps & (FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV), 0);
	assert_int_equal(info->caps & (FI_TAGGED | FI_SEND | FI_RECV),
			 FI_TAGGED | FI_SEND | FI_RECV);
	assert_int_equal(info->tx_attr->caps & ~info->caps, 0);
	assert_int_equal(info->rx_attr->caps & ~info->caps, 0);
	fi_freeinfo(info);
	hints->caps = FI_TAGGED | FI_MULTICAST;
	refused(NEW);
	hints->caps = FI_TAGGED | FI_HMEM;
	refused(NEW);
	hints->caps = FI_TAGGED | FI_TRIGGER;
	refused(NEW);
	hints->caps = FI_TAGGED;
	hints->tx_attr->caps = FI_RMA;
	refused(NEW);
}

/* What Open MPI and MPICH do: take all that is offered, and ask for exactly that. */
static void caps__all_that_is_offered_can_be_asked_for(void **state)
{
	struct fi_info *all, *again;

	hints->caps = 0;
	all = granted(NEW);
	hints->caps = all->caps;
	hints->tx_attr->caps = all->tx_attr->caps;
	hints->rx_attr->caps = all->rx_attr->caps;
	again = granted(NEW);
	assert_int_equal(again->caps, all->caps);
	fi_freeinfo(all);
	fi_freeinfo(again);
}

static void choices__come_back_as_hinted(void **state)
{
	static const enum fi_threading threading[] = {FI_THREAD_SAFE, FI_THREAD_FID,
						      FI_THREAD_DOMAIN, FI_THREAD_COMPLETION,
						      FI_THREAD_ENDPOINT};

	for (size_t i = 0; i < sizeof(threading) / sizeof(threading[0]); i++) {
		struct fi_info *info;

		hints->domain_attr->threading = threading[i];
		hints->domain_attr->av_type = i % 2 ? FI_AV_MAP : FI_AV_TABLE;
		hints->domain_attr->data_progress = i % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
		hints->tx_attr->op_flags = i % 2 ? FI_COMPLETION : FI_DELIVERY_COMPLETE;
		info = granted(NEW);
		assert_int_equal(info->domain_attr->threading, threading[i]);
		assert_int_equal(info->domain_attr->av_type, hints->domain_attr->av_type);
		assert_int_equal(info->domain_attr->data_progress,
				 hints->domain_attr->data_progress);
		assert_int_equal(info->tx_attr->op_flags, hints->tx_attr->op_flags);
		fi_freeinfo(info);
	}
}

static void mr_mode__for_every_version(void **state)
{
	static const struct {
		uint32_t version;
		int asked, granted;
	} table[] = {
		{FI_VERSION(1, 0), MR_UNSPEC, MR_SCALABLE},
		{FI_VERSION(1, 0), MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 4), MR_SCALABLE, MR_SCALABLE},
		{FI_VERSION(1, 5), 0, 0},
		{FI_VERSION(1, 5), MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 17), FI_MR_LOCAL | FI_MR_VIRT_ADDR, 0},
		{FI_VERSION(1, 17), FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY, FI_MR_PROV_KEY},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct fi_info *info;

		hints->domain_attr->mr_mode = table[i].asked;
		info = granted(table[i].version);
		assert_int_equal(info->domain_attr->mr_mode, table[i].granted);
		fi_freeinfo(info);
	}
}

static void limits__beyond_them_is_refused(void **state)
{
	struct fi_info *info = granted(NEW);
	size_t inject = info->tx_attr->inject_size, iov = info->tx_attr->iov_limit;
	size_t size = info->ep_attr->max_msg_size;

	fi_freeinfo(info);
	hints->tx_attr->inject_size = inject;
	hints->tx_attr->iov_limit = iov;
	hints->ep_attr->max_msg_size = size;
	fi_freeinfo(granted(NEW));
	hints->tx_attr->inject_size = inject + 1;
	refused(NEW);
	hints->tx_attr->inject_size = 0;
	hints->tx_attr->iov_limit = iov + 1;
	refused(NEW);
	hints->tx_attr->iov_limit = 0;
	hints->ep_attr->max_msg_size = size + 1;
	refused(NEW);
	hints->ep_attr->max_msg_size = 0;
	hints->ep_attr->type = FI_EP_MSG;
	refused(NEW);
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	refused(NEW);
	hints->addr_format = FI_FORMAT_UNSPEC;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	fi_freeinfo(granted(NEW));
	hints->tx_attr->msg_order = FI_ORDER_RAS;
	refused(NEW);
}

/* Options that plug-ins for GPUs set (libfabric 1.18 numbers them): of two the one is kept, as CUDA
 * is never called; what would be ignored is refused. */
static void options__of_gpus(void **state)
{
	enum { CUDA_API_PERMITTED = 10, SHARED_MEMORY_PERMITTED = 11 };
	bool no = false, yes = true;
	struct fid *ep;

	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_UNSPEC});
	ep = &a.ep->fid;
	assert_int_equal(fi_setopt(ep, FI_OPT_ENDPOINT, CUDA_API_PERMITTED, &no, sizeof(no)), 0);
	assert_int_equal(fi_setopt(ep, FI_OPT_ENDPOINT, CUDA_API_PERMITTED, &yes, sizeof(yes)),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_setopt(ep, FI_OPT_ENDPOINT, CUDA_API_PERMITTED, &no, 0), -FI_EINVAL);
	assert_int_equal(fi_setopt(ep, FI_OPT_ENDPOINT, SHARED_MEMORY_PERMITTED, &no, sizeof(no)),
			 -FI_ENOPROTOOPT);
	pair_close();
}

/* Plug-ins of NCCL and NIXL have room for so many bytes. */
enum { ADDRESS = 56 };

/* A server is opened with a service of its node; a client knows only that, and sends to it. */
static void name__leads_to_the_endpoint(void **state)
{
	struct fi_info *server, *client, *nobody;
	struct fi_av_attr av_attr = {0};
	fi_addr_t addr[3];
	struct fid_ep *ep;
	struct fid_av *av;
	char text[200], bytes[ADDRESS], own[ADDRESS];
	size_t n = sizeof(own);

	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_UNSPEC});
	assert_int_equal(fi_getinfo(NEW, "127.0.0.1", "47311", FI_SOURCE, hints, &server), 0);
	assert_int_equal(fi_getinfo(NEW, "127.0.0.1", "47311", 0, hints, &client), 0);
	assert_int_equal(fi_getinfo(NEW, "no-such-host.invalid", "47311", 0, hints, &nobody),
			 -FI_ENODATA);
	assert_int_equal(client->dest_addrlen, sizeof(bytes));
	assert_int_equal(fi_endpoint(pair_domain, server, &ep, NULL), 0);
	assert_int_equal(fi_getname(&ep->fid, own, &n), 0);
	assert_int_equal(fi_av_open(pair_domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_av_insert(av, client->dest_addr, 1, &addr[0], 0, NULL), 1);
	assert_int_equal(fi_av_insertsvc(av, "127.0.0.1", "47311", &addr[1], 0, NULL), 1);
	for (int i = 0; i < 2; i++) {
		n = sizeof(bytes);
		assert_int_equal(fi_av_lookup(av, addr[i], bytes, &n), 0);
		assert_memory_equal(bytes, own, sizeof(own));
	}
	n = sizeof(text);
	assert_non_null(strstr(fi_av_straddr(av, own, text, &n), "fi_addr_beowire://"));
	assert_int_equal(n, strlen(text) + 1);
	assert_int_equal(fi_av_remove(av, addr, 1, 0), 0);
	n = sizeof(bytes);
	assert_int_equal(fi_av_lookup(av, addr[0], bytes, &n), -FI_EINVAL);
	assert_int_equal(fi_av_lookup(av, addr[1], bytes, &n), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	fi_freeinfo(server);
	fi_freeinfo(client);
	pair_close();
}

/* A child of fork() closes what it has of its parent's endpoint: the parent keeps its own. */
static void name__outlives_a_childs_close(void **state)
{
	struct fi_av_attr av_attr = {0};
	struct fi_info *server;
	struct fid_ep *ep;
	struct fid_av *av;
	fi_addr_t addr;
	int ends[2];
	pid_t child;
	char done;

	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_UNSPEC});
	assert_int_equal(fi_getinfo(NEW, "127.0.0.1", "47313", FI_SOURCE, hints, &server), 0);
	assert_int_equal(fi_endpoint(pair_domain, server, &ep, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		alarm(30);
		done = fi_close(&ep->fid) ? 'n' : 'y';
		if (write(ends[1], &done, 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &done, 1), 1);
	assert_int_equal(done, 'y');
	assert_int_equal(fi_av_open(pair_domain, &av_attr, &av, NULL), 0);
	/* For longer than a thread takes that was told to end. */
	for (int i = 0; i < 50; i++) {
		assert_int_equal(fi_av_insertsvc(av, "127.0.0.1", "47313", &addr, 0, NULL), 1);
		usleep(10000);
	}
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_endpoint(pair_domain, server, &ep, NULL), 0); /* the port is free */
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ends[0]);
	assert_int_equal(fi_close(&av->fid), 0);
	fi_freeinfo(server);
	pair_close();
}

/* Bytes that an answer repeats; a question with its padding. */
enum { HEAD = 16, QUESTION = 80, LATE_MS = 250, WRONG = 150 };

/* Answers questions for a name as a busy node does: late, and each twice, after more answers to
 * somebody else's questions than there are tries. Ends with a datagram of another length. */
static void *answer_late(void *arg)
{
	int fd = *(int *)arg;
	char question[QUESTION], answer[HEAD + ADDRESS], wrong[HEAD + ADDRESS] = {0};
	struct sockaddr_in from;
	socklen_t len = sizeof(from);

	memset(answer + HEAD, 0x5A, ADDRESS);
	while (recvfrom(fd, question, QUESTION, MSG_TRUNC, (struct sockaddr *)&from, &len) ==
	       QUESTION) {
		memcpy(answer, question, HEAD);
		usleep(LATE_MS * 1000);
		for (int i = 0; i < WRONG; i++)
			sendto(fd, wrong, sizeof(wrong), 0, (struct sockaddr *)&from, len);
		for (int i = 0; i < 2; i++)
			sendto(fd, answer, sizeof(answer), 0, (struct sockaddr *)&from, len);
	}
	return NULL;
}

/* A question is repeated before its answer comes: the answer counts all the same. */
static void name__late_answers_count(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct fi_av_attr av_attr = {0};
	char service[8], bytes[ADDRESS];
	socklen_t len = sizeof(sin);
	size_t n = sizeof(bytes);
	pthread_t thread;
	struct fid_av *av;
	fi_addr_t addr;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	snprintf(service, sizeof(service), "%d", ntohs(sin.sin_port));
	assert_int_equal(pthread_create(&thread, NULL, answer_late, &fd), 0);
	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_UNSPEC});
	assert_int_equal(fi_av_open(pair_domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_av_insertsvc(av, "127.0.0.1", service, &addr, 0, NULL), 1);
	assert_int_equal(fi_av_lookup(av, addr, bytes, &n), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0x5A);
	assert_int_equal(fi_close(&av->fid), 0);
	pair_close();
	sendto(fd, "end", 3, 0, (struct sockaddr *)&sin, sizeof(sin));
	pthread_join(thread, NULL);
	close(fd);
}

/* A datagram of `n` bytes that begins as the question with this number. */
static void ask(int fd, uint64_t magic, uint64_t number, size_t n)
{
	uint64_t datagram[32] = {magic, number};

	assert_int_equal(send(fd, datagram, n, 0), n);
}

/* A question's source may be forged: no answer is longer than its question. And an answer must not
 * be taken for a question: two such services would talk for ever. */
static void name__only_questions_are_answered(void **state)
{
	static const uint64_t magic = 0x3F454D414E5742BEULL;
	static const size_t others[] = {0, HEAD, HEAD + ADDRESS, QUESTION - 1, QUESTION + 1, 256};
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = htons(47312),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint64_t answer[32];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char dir[] = "/tmp/test_getinfo-XXXXXX";
	struct fi_info *server;
	struct fid_ep *ep;

	pair_open(&(struct pair_options){.wait_obj = FI_WAIT_UNSPEC});
	assert_int_equal(fi_getinfo(NEW, "127.0.0.1", "47312", FI_SOURCE, hints, &server), 0);
	assert_non_null(mkdtemp(dir));
	setenv("BEOWIRE_STATS", dir, 1);
	assert_int_equal(fi_endpoint(pair_domain, server, &ep, NULL), 0);
	unsetenv("BEOWIRE_STATS");
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ask(fd, magic, 1, others[i]);
	ask(fd, magic + 1, 1, QUESTION);
	ask(fd, magic, 2, QUESTION);
	assert_int_equal(recv(fd, answer, sizeof(answer), 0), HEAD + ADDRESS);
	assert_true(HEAD + ADDRESS <= QUESTION);
	assert_int_equal(answer[1], 2); /* those before were passed over */
	assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), -1);
	close(fd);
	assert_int_equal(fi_close(&ep->fid), 0);
	pair_counted(dir, "\"name_drops\":7,");
	fi_freeinfo(server);
	pair_close();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(caps__what_is_asked_for_and_no_other_primary_ones),
		TEST(caps__all_that_is_offered_can_be_asked_for),
		TEST(choices__come_back_as_hinted),
		TEST(mr_mode__for_every_version),
		TEST(limits__beyond_them_is_refused),
		TEST(options__of_gpus),
		TEST(name__leads_to_the_endpoint),
		TEST(name__outlives_a_childs_close),
		TEST(name__late_answers_count),
		TEST(name__only_questions_are_answered),
	};

	return cmocka_run_group_tests_name("getinfo", tests, NULL, NULL);
}
