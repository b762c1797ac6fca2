/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc.h - Requests of code in a cell to the host (docs/protocol/kernel.md, "Asking the host").
 *
 * A request belongs to the execution that runs in the kernel it came from: that is how the sandbox,
 * its owner and its servers are known, and nothing in a request can change that. It is answered
 * once, or cancelled with the execution. Requests are bounded in flight, in size and per second;
 * code that floods the host beyond that is killed.
 */
#ifndef CAISSON_FRONT_CODE_RPC_H
#define CAISSON_FRONT_CODE_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct execution;
struct rpc;
struct kernel;

#define RPC_IN_FLIGHT_MAX 64u
#define RPC_TEXT_MAX (8u << 20)   /* of arguments and values */
#define RPC_PART_MAX (1u << 20)   /* of a result, in one message */
#define RPC_HELD_MAX (128u << 20) /* of results that one sandbox does not read */
#define RPC_DEPTH_MAX 64u
#define RPC_VALUES_MAX 200000u

struct rpc {
	struct execution *x;
	struct kernel *kernel;
	struct rpc *prev, *next;       /* of the execution */
	int64_t id;                    /* the kernel's */
	void *work;                    /* of the operation */
	void (*cancel)(struct rpc *r); /* let go of the work, and neither answer nor free; may be
					  NULL */
	struct buf out;                /* a large result on its way */
	size_t sent;
};

/* rpc_message() - An rpc_request or rpc_cancel of a kernel that runs @x. */
void rpc_message(struct execution *x, struct kernel *s, const char *type, const json_t *m);
/* rpc_stray() - One of a kernel that runs nothing: refused. */
void rpc_stray(struct kernel *s, const json_t *m);
/* rpc_drained() - The kernel has read what was sent: more of a large result can go. */
void rpc_drained(struct execution *x, struct kernel *s);
/* rpc_end() - The execution is over, or shall be: cancel all. @tell: the kernel may still wait for
 * answers. */
void rpc_end(struct execution *x, bool tell);

/* ---- answers; r is gone afterwards --------------------------------------------------------- */

/* rpc_answer() - @json: the result's text on one line; copied when it is large. */
void rpc_answer(struct rpc *r, const char *json, size_t len);
void rpc_fail(struct rpc *r, const char *code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* rpc_text() - Member @key of @m: JSON text of an object within the bounds above. NULL with *why,
 * static text. */
const char *rpc_text(const json_t *m, const char *key, size_t *ret_len, const char **why);

#endif
