/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - The inside of a path that ends the client's TLS here: for inspect*.c
 * alone. What others need is inspect_path, in flow.h's terms.
 */
#ifndef CAISSON_GATE_INSPECT_H
#define CAISSON_GATE_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/answer.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/uplink.h"

struct flow;

#define INSPECT_OVERRIDES_MAX 64u /* each is judged, and the name of a method is short */

struct inspect {
	struct flow *flow; /* NULL: it is over, and only the client's connection is left to end */
	struct conn *conn; /* the client's; NULL: ended */
	struct http_config http;
	struct uplink up;  /* the server's */
	bool secure;       /* over TLS; only then are secrets put in */
	bool ready;        /* its handshake is over */
	bool closing;      /* no further request goes to it */
	bool tunnel;       /* bytes that mean nothing to us, both ways */
	char problem[160]; /* why there is no server; empty: there is one */

	struct http_exchange *x; /* the request under way; NULL: none */
	/* What it was judged by, for as long as it or its tunnel lasts. */
	struct {
		char *method, *path;
		struct buf overrides; /* other methods that its headers name, each with its NUL */
		struct buf secrets;   /* placeholders that it got values for, each with its NUL */
	} asked;
	struct buf head; /* of it, not yet sent */
	bool chunked, answering, switches;
	bool whole;    /* all of the request has come */
	bool last;     /* it has a body, so the connection to the server ends with its answer */
	uint64_t left; /* of the answer's announced length */
	struct answer answer;

	struct timer timer; /* for the server's handshake */
	uint64_t counted_up, counted_down;
	struct deferred reaper;
};

extern const struct flow_path inspect_path;

/* inspect_forget() - The request under way is over, or nobody waits for it. */
void inspect_forget(struct inspect *i);
/* inspect_give_up() - The request under way gets an answer of ours, if it has none yet; then the
 * connection ends. */
void inspect_give_up(struct inspect *i, const char *message);

/*
 * inspect_judge() - Keep what the request asks for, and judge it by the rules of now. 0, or a
 * status and @why. inspect_judge_again() - The same of the request that was kept.
 */
int inspect_judge(struct inspect *i, const struct http_request *q, struct buf *why);
int inspect_judge_again(const struct inspect *i, struct buf *why);
void inspect_forget_asked(struct inspect *i);

/* inspect_open_server() - On the flow's connection; it must be ready for requests in time. 0 or a
 * negative errno. */
int inspect_open_server(struct inspect *i, bool tls);
/* inspect_put(), inspect_send_head() - Bytes of the request. What can not be written any more gives
 * up. */
void inspect_put(struct inspect *i, const void *data, size_t len);
void inspect_send_head(struct inspect *i);
/* inspect_expect() - The answer to it is what comes next; @to_head: one without a body. */
void inspect_expect(struct inspect *i, bool to_head);

/* inspect_head() - The head for the server, with values in the place of placeholders. 0, or the
 * error of i->head. */
int inspect_head(struct inspect *i, const struct http_request *q);
/* inspect_misplaced() - Whether a placeholder that has a value here is in a header that must not
 * carry it; @why: which. */
bool inspect_misplaced(struct inspect *i, const struct http_request *q, struct buf *why);
/* inspect_has_body() - Whether bytes follow the head. */
bool inspect_has_body(const struct http_request *q);
/* inspect_switches() - Whether the request asks for another protocol in a way that can be passed
 * on. */
bool inspect_switches(const struct inspect *i, const struct http_request *q);
/* inspect_answer() - Headers of the answer, for the client. */
void inspect_answer(struct inspect *i);

/* inspect_join() - After a 101: from now on bytes. */
void inspect_join(struct inspect *i, const char *early, size_t len);
/* inspect_count() - Bytes that moved since last asked. False: the flow is over. */
bool inspect_count(struct inspect *i);

#endif
