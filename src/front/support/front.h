/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - The parts of the daemon, each by pointer.
 *
 * A part that is only declared here can be passed on and cannot be looked into: a file that uses
 * one includes that part's own header, and tools/check-layers.py decides whether it may. So this
 * header gives nobody more than its layer has. main/parts.c makes all of them.
 */
#ifndef CAISSON_FRONT_FRONT_H
#define CAISSON_FRONT_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/support/config.h"
#include "net/loop.h"
#include "wire/warden.h"

#define FRONT_QUEUE_MAX 512u /* executions that wait for a sandbox */

struct front {
	struct config config;
	char address[80]; /* config.listen, when that asked for any free port */
	struct loop loop;
	struct ledger *ledger; /* who ran what */
	struct store *store;   /* records of sandboxes, idempotency keys */
	struct cell_spec spec; /* of every sandbox, but for its image */

	/* Cells. */
	struct warden_link *link;
	struct keep *keep;       /* what the next front needs if this one is killed */
	struct drivers *drivers; /* of the interpreters */
	struct images *images;   /* that sandboxes are made from */
	struct mounts *mounts;   /* of the operator, for every sandbox */
	const struct cell_hooks *cell_hooks;

	/* Sandboxes. */
	const struct sandbox_hooks *hooks;       /* of the parts above sandboxes */
	struct adopt *adopt;                     /* sandboxes of a front that was killed */
	struct policy_now *policy;               /* the operator's rules */
	struct open_executions *open_executions; /* began, and did not end before a restart */
	struct spool_bank *spools;               /* output beyond what answers return */
	struct stream_bank *streams;             /* events of streamed executions */
	struct sandbox *sandboxes;               /* named and anonymous, all that live */

	/* Features of sandboxes. */
	struct gate_link *gate; /* the way out of sandboxes */
	struct secrets *secrets;
	struct workspaces *workspaces; /* directories that outlive sandboxes */
	struct packages *packages;     /* installed, beside those of the image */
	struct buckets *buckets;       /* of the operator */
	struct bridge_link *bridge;    /* to the MCP servers that code may call */
	struct upstreams *upstreams;   /* these servers, as they are known */
	/* The name of the i-th server; NULL: none. */
	const char *(*server_name)(const struct front *f, size_t i);
	struct approval *approvals; /* calls that wait for a person (tool_calls/approval.h) */

	/* Wires. */
	struct auth *auth;
	struct mcp *mcp;
	struct jsession *jupyter_sessions; /* notebooks and their kernels */
	struct http_config *http;
	struct listener *listeners[2];

	/* The process. */
	struct systemd *systemd; /* the service manager, if one started the daemon */
	struct jail_report *jail;
	int meminfo_fd; /* /proc/meminfo, opened before the jail */
	size_t n_sandboxes, n_cells, n_busy, n_queued;
	size_t n_proxied; /* requests through ports of all sandboxes */
	size_t files_max; /* how many descriptors we may have */
	size_t conns_max;
	struct timer forget_timer;       /* old idempotency keys */
	bool draining, failed;           /* the process is ending; it ends with an error */
	uint64_t started_ns, started_ms; /* started_ms: since 1970 */
};

#endif
