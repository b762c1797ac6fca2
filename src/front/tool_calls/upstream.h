/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream.h - MCP servers of the operator's configuration, as the front knows them: names, rules,
 * tools.
 *
 * The front speaks to none of them: the bridge does (bridge_link.h), and has what they need to be
 * started or reached. The front asks for the tools of a server when they are first needed, and
 * keeps them until the bridge reports that they may have changed.
 */
#ifndef CAISSON_FRONT_CODE_UPSTREAM_H
#define CAISSON_FRONT_CODE_UPSTREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/tool_calls/bridge_link.h"
#include "mcp/tool_rules.h"

struct err;
struct execution;
struct tool_calls;

struct upstream {
	char *name, *alias, *description;
	struct tool_rules rules; /* the operator's */
	json_t *tools;           /* as it lists them, an array; NULL: not known now */
};

struct upstreams {
	struct upstream *all;
	size_t n;
};

/* upstreams_open() - After the bridge's hello. 0 or -errno. */
int upstreams_open(struct tool_calls *calls, struct err *e);
void upstreams_close(struct tool_calls *calls); /* idempotent */

/* upstream_at() - The i-th, NULL after the last. */
struct upstream *upstream_at(const struct tool_calls *calls, size_t i);
/* upstream_name() - Its name, for admission.server_name. */
const char *upstream_name(const struct tool_calls *calls, size_t i);
struct upstream *upstream_find(const struct tool_calls *calls, const char *name);
/* upstream_state() - idle, starting, ready or failed. */
const char *upstream_state(const struct tool_calls *calls, const struct upstream *u);

/* The struct is the asker's, and zero but for done and arg. */
struct upstream_ask {
	/* @why NULL: u->tools is known; otherwise an answer that is not ok. Once, never from inside
	 * upstream_learn(). */
	void (*done)(struct upstream_ask *a, const struct bridge_answer *why);
	void *arg;
	struct tool_calls *tool_calls;
	struct upstream *upstream;
	struct bridge_call call;
};

/* upstream_learn() - Ask for its tools, for @x, which gets an answer before its time is over. 0, or
 * -errno: then done is not called. */
int upstream_learn(const struct execution *x, struct upstream *u, struct upstream_ask *a,
		   struct err *e);
void upstream_forget(struct upstream_ask *a); /* nobody wants to know any more; idempotent */

/* upstream_tool() - One of its tools, which are known; NULL: it has none of this name. */
const json_t *upstream_tool(const struct upstream *u, const char *name);
/* upstream_read_only() - Whether its server says that this one changes nothing. */
bool upstream_read_only(const json_t *tool);

#endif
