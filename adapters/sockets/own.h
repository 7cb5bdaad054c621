/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What libbeowire calls of the C library inside the preload library, included before each of its
 * sources: its descriptors are made and closed by own.c, so that the program cannot close them, and
 * none of its calls is taken for one of the program's.
 */
#ifndef BWS_OWN_H
#define BWS_OWN_H

#define accept4	      bws_own_accept4
#define bind	      bws_own_bind
#define close	      bws_own_close
#define connect	      bws_own_connect
#define epoll_create1 bws_own_epoll_create1
#define epoll_ctl     bws_own_epoll_ctl
#define eventfd	      bws_own_eventfd
#define fcntl	      bws_own_fcntl
#define getsockopt    bws_own_getsockopt
#define memfd_create  bws_own_memfd_create
#define open	      bws_own_open
#define openat	      bws_own_openat
#define poll	      bws_own_poll
#define ppoll	      bws_own_ppoll
#define read	      bws_own_read
#define recv	      bws_own_recv
#define recvmmsg      bws_own_recvmmsg
#define recvmsg	      bws_own_recvmsg
#define send	      bws_own_send
#define sendmmsg      bws_own_sendmmsg
#define sendmsg	      bws_own_sendmsg
#define sendto	      bws_own_sendto
#define setsockopt    bws_own_setsockopt
#define socket	      bws_own_socket
#define write	      bws_own_write

#endif
