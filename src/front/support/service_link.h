/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_link.h - The front's socket to a service: requests are sent, replies handled as they
 * come.
 *
 * A service is a process with a SEQPACKET socket that takes requests of one fixed size and sends
 * messages of one fixed size, both with a version first and a sequence number. Each request under
 * way is a struct of the asker's; an asker that goes away calls service_link_forget().
 *
 * An attacker may have taken the service over. Size and version are checked here; the service's own
 * receive() checks texts and numbers in a message.
 *
 * caisson-bridge and caisson-bucket have other protocols: JSON text of any length, and a pipe for
 * each job. See tool_calls/bridge_link.h and buckets/buckets.h.
 */
#ifndef CAISSON_FRONT_SUPPORT_SERVICE_LINK_H
#define CAISSON_FRONT_SUPPORT_SERVICE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

#define SERVICE_MESSAGE_MAX 1024 /* bytes of a message from a service */
#define SERVICE_FDS_MAX 10       /* descriptors with it */

struct err;
struct service_link;

/* A request under way: the first member of the service's own struct. */
struct service_call {
	uint64_t seq; /* 0: not under way */
	struct service_call *next;
};

/* One constant for each service. */
struct service {
	const char *name; /* in messages: "the warden" */
	uint32_t version;
	size_t request_size, message_size, seq_at; /* seq_at: in both */
	size_t fds_max;                            /* with one message */
	/* A message whose descriptors find no room in our table comes without them. */
	bool loses_fds;
	/* Requests that wait for room in the socket. 0: a full socket is the asker's error. */
	size_t queue_max;
	/* A message. @fds: what is kept is set to -1; the rest is closed. */
	void (*receive)(struct service_link *l, void *message, int *fds, size_t n_fds);
	/* The answer to a request that has none: @code is a negative errno. */
	void (*fail)(struct service_call *c, int code, const char *why);
	/* The service has ended, or sent nonsense. The link is closed; requests still wait. */
	void (*gone)(struct service_link *l);
};

struct service_link {
	const struct service *service;
	struct watch watch; /* fd -1: there is no service, or it is gone */
	uint64_t seq;
	struct service_call *calls;              /* under way */
	struct service_request *out, **out_tail; /* not sent yet */
	size_t n_out;
};

/* service_link_init() - @fd: of the service, ours from now on; or -1. */
void service_link_init(struct service_link *l, const struct service *s, int fd);

/* service_link_wait() - Before service_link_start(): ask, and wait for the answer. 0 or -errno. */
int service_link_wait(struct service_link *l, void *request, int fd, void *ret);

/* service_link_start() - Watch its socket. */
int service_link_start(struct service_link *l, struct loop *loop, struct err *e);

/* service_link_close() - No event follows. The queue is dropped; requests still wait. */
void service_link_close(struct service_link *l);

/* service_link_free() - Close it, and forget every request. Idempotent. */
void service_link_free(struct service_link *l);

/*
 * service_link_ask() - Send a request, whose version and number are filled here. Never calls back.
 * @c: gets one answer, later; NULL: nobody waits for it
 * @fds: borrowed
 * Return: 0, or -errno: without a service, without memory or descriptors, or when too much waits.
 * A service that is gone is noticed by the next event; until then requests wait as usual.
 */
int service_link_ask(struct service_link *l, struct service_call *c, void *request, const int *fds,
		     size_t n_fds, struct err *e);

/* service_link_take() - The request of this number, which is over; or NULL. */
struct service_call *service_link_take(struct service_link *l, uint64_t seq);
void service_link_forget(struct service_link *l, struct service_call *c); /* idempotent */

/* service_link_drop_queue() - Forget unsent requests: the service that they were for is dead. */
void service_link_drop_queue(struct service_link *l);

/* service_link_fail() - Every request up to number @until fails; its asker may ask again. */
void service_link_fail(struct service_link *l, uint64_t until, int code, const char *why);

/*
 * service_open_dir() - Before the jail: @name below the state directory, made if it is not there.
 * A mode that keeps its owner from listing it is undone. Return: a descriptor, or -errno.
 */
int service_open_dir(const char *state, const char *name, struct err *e);

#endif
