/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - The inside of a path that reads HTTP: for inspect*.c alone. Others use inspect_path
 * (flow.h).
 */
#ifndef CAISSON_GATE_INSPECT_H
#define CAISSON_GATE_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/http_relay.h"
#include "net/loop.h"

struct flow;

#define INSPECT_OVERRIDES_MAX 64u /* each is judged, and the name of a method is short */

struct inspect {
	struct flow *flow; /* NULL: over; only the client's connection is left to end */
	struct conn *conn; /* the client's; NULL: ended */
	struct http_config http;
	struct relay relay; /* to the server */
	bool secure;        /* over TLS; only then values of secrets are put in */
	bool closing;       /* no further request goes to the server */
	bool last;          /* the request has a body: its answer ends the connection */
	char problem[160];  /* why there is no server; empty: there is one */
	/* The parts of the request by which it was judged, as long as it or its tunnel lasts. */
	struct {
		char *method, *path;
		struct buf overrides; /* other methods that its headers name, each with its NUL */
		struct buf secrets;   /* placeholders that it got values for, each with its NUL */
	} judged;
	uint64_t counted_up, counted_down;
	struct deferred reaper;
};

extern const struct flow_path inspect_path;

/*
 * inspect_judge() - Keep the parts of the request that rules are about, and judge it by the present
 * rules. 0, or a status and @why. inspect_judge_again() - Judge the request that was kept.
 */
int inspect_judge(struct inspect *i, const struct http_request *q, struct buf *why);
int inspect_judge_again(const struct inspect *i, struct buf *why);
void inspect_forget_judged(struct inspect *i);

/* inspect_head() - Write the head for the server to relay.head, with values in the place of
 * placeholders. @switches: to WebSocket. 0, or the error of a buffer. */
int inspect_head(struct inspect *i, const struct http_request *q, bool switches);
/* inspect_misplaced() - Whether a placeholder that has a value here is in a header that must not
 * carry it; @why: which. */
bool inspect_misplaced(struct inspect *i, const struct http_request *q, struct buf *why);
/* inspect_has_body() - Whether bytes follow the head. */
bool inspect_has_body(const struct http_request *q);
/* inspect_add_headers() - Give the client the headers of the answer. */
void inspect_add_headers(struct inspect *i);

#endif
