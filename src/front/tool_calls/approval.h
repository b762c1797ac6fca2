/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval.h - A call that waits for a person's decision.
 *
 * The sandbox's owner decides: over REST (GET and POST /v1/approvals), with `caisson approve`, or
 * as the answer to an elicitation of the MCP client whose request the code runs for. The first
 * decision counts. A call that nobody decides in time is denied. While a call of an execution
 * waits, that execution's time stands still, for at most EXECUTION_STAND_MAX_S in all.
 */
#ifndef CAISSON_FRONT_CODE_APPROVAL_H
#define CAISSON_FRONT_CODE_APPROVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/support/name.h"
#include "net/loop.h"

struct approval;
struct execution;
struct json;
struct tool_calls;

#define APPROVAL_SHOWN 4096u /* bytes of arguments that a person is shown */
#define APPROVAL_REASON 500u /* characters */
#define APPROVALS_MAX 1024u  /* of the daemon */
#define APPROVALS_OWNER_MAX 128u

enum approval_outcome { APPROVAL_GIVEN, APPROVAL_DENIED, APPROVAL_LATE };

/* The call. All members are borrowed while approval_new() runs. */
struct approval_ask {
	const char *call; /* the call's id in the ledger */
	const char *server, *tool, *rule;
	const char *arguments;
	size_t argument_bytes;
	uint64_t patience_ms;
	/* Once, unless it was dropped before. @by: through what; @reason: a person's, may be empty.
	 */
	void (*decided)(struct approval *a, enum approval_outcome o, const char *by,
			const char *reason);
	void *arg;
};

struct approval {
	struct tool_calls *tool_calls;
	struct approval *prev, *next; /* all of the daemon, the newest first */
	struct execution *x;
	char id[33];
	char owner[OWNER_MAX];
	char *server, *tool, *rule, *arguments; /* arguments: the beginning */
	size_t argument_bytes;
	uint64_t created_ms, patience_ms;
	struct timer timer;
	struct deferred ask; /* of the sink, whose client may be gone: that ends the execution */
	void (*decided)(struct approval *a, enum approval_outcome o, const char *by,
			const char *reason);
	void *arg;
	/* For the client that was asked: called when the approval is over, by any way. */
	void (*over)(struct approval *a);
	void *asked;
};

/* approval_new() - NULL: too many wait, or there is no memory. Also asks the execution's sink. */
struct approval *approval_new(struct execution *x, const struct approval_ask *ask);
struct approval *approval_find(struct tool_calls *calls, const char *owner, const char *id);
/* approval_decide() - The decision; @a is gone. */
void approval_decide(struct approval *a, bool yes, const char *by, const char *reason);
/* approval_drop() - The call waits no more; @a is gone. */
void approval_drop(struct approval *a);

void approval_json(const struct approval *a, struct json *j);

#endif
