/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - The parts of the daemon, each by pointer.
 *
 * A part that is only declared here can be passed on and cannot be looked into: a file that uses
 * one includes that part's own header, and tools/check-layers.py decides whether it may. So this
 * header gives nobody more than its layer has. main/front.c makes all of them.
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
	struct keep *keep;       /* for the front that comes after us, if we are killed */
	struct drivers *drivers; /* of the interpreters */
	struct images *images;   /* what sandboxes are made from */
	struct mounts *mounts;   /* of the operator's, for every sandbox */
	const struct cell_hooks *cell_hooks;

	/* Sandboxes. */
	const struct sandbox_hooks *hooks;       /* what the parts above add to a sandbox's life */
	struct adopt *adopt;                     /* of the front that was killed before us */
	struct policy_now *policy;               /* the operator's rules */
	struct open_executions *open_executions; /* that began and were not seen to end */
	struct spool_bank *spools;               /* output beyond what answers return */
	struct stream_bank *streams;             /* events of streamed executions */
	struct sandbox *sandboxes;               /* named and anonymous, all that live */

	/* What sandboxes can have. */
	struct gate_link *gate; /* the way out of sandboxes */
	struct secrets *secrets;
	struct workspaces *workspaces; /* directories that outlive sandboxes */
	struct packages *packages;     /* what sandboxes can import beyond their image */
	struct buckets *buckets;       /* of the operator */
	struct bridge_link *bridge;    /* to the MCP servers that code may call */
	struct upstreams *upstreams;   /* these servers, as they are known */
	const char *(*server_name)(const struct front *f, size_t i); /* of the i-th; NULL: no more
								      */
	struct approval *approvals; /* calls that wait for a person (tool_calls/approval.h) */

	/* Wires. */
	struct auth *auth;
	struct mcp *mcp;
	struct jsession *jupyter_sessions; /* notebooks and their kernels */
	struct http_config *http;
	struct listener *listeners[2];

	/* The process. */
	struct systemd *systemd; /* the service manager, if one started us */
	struct jail_report *jail;
	int meminfo_fd;            /* /proc/meminfo, opened before the jail */
	int ledger_dir, spool_dir; /* below the state directory, opened before the jail */
	size_t n_sandboxes, n_cells, n_busy, n_queued;
	size_t n_proxied; /* requests through ports of all sandboxes */
	size_t files_max; /* how many descriptors we may have */
	size_t conns_max;
	struct watch signals;
	struct timer drain_timer;
	struct timer forget_timer; /* old idempotency keys */
	uint64_t drain_until_ns;
	unsigned int told, passed_on; /* to end: to us, and by the keeper */
	bool draining, failed;
	uint64_t started_ns, started_ms; /* the second since 1970 */
};

#endif
