/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - The daemon's one object: what it was asked for, and what it holds.
 */
#ifndef CAISSON_FRONT_FRONT_H
#define CAISSON_FRONT_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/buckets/buckets.h"
#include "front/cell/image_use.h"
#include "front/cell/language.h"
#include "front/cell/warden_link.h"
#include "front/config.h"
#include "front/egress/gate.h"
#include "front/http/auth.h"
#include "front/jail.h"
#include "front/mcp/mcp.h"
#include "front/output/spool.h"
#include "front/output/stream_log.h"
#include "front/packages/packages.h"
#include "front/policy/load.h"
#include "front/sandbox/adopt.h"
#include "front/sandbox/keep.h"
#include "front/sandbox/open_executions.h"
#include "front/secrets/secrets.h"
#include "front/systemd.h"
#include "front/tool_calls/bridge_link.h"
#include "front/tool_calls/upstream.h"
#include "front/workspaces/workspaces.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/loop.h"
#include "wire/warden.h"

struct approval;
struct execution;
struct sandbox;
struct jsession;
struct ledger;
struct store;

#define FRONT_QUEUE_MAX 512u /* executions that wait for a sandbox */

struct front {
	struct config config;
	char address[80]; /* config.listen, when that asked for any free port */
	struct loop loop;
	struct warden_link link;
	struct gate_link gate;     /* the way out of sandboxes */
	struct buckets buckets;    /* of the operator */
	struct bridge_link bridge; /* to the MCP servers that code may call */
	struct keep keep;          /* for the front that comes after us, if we are killed */
	struct adopt adopt;        /* of the one that was killed before us */
	struct auth *auth;
	struct policy_now policy; /* the operator's rules */
	struct drivers drivers;
	struct cell_spec spec;                  /* of every sandbox, but for its image */
	struct images images;                   /* what they are made from */
	int meminfo_fd;                         /* /proc/meminfo, opened before the jail */
	struct ledger *ledger;                  /* who ran what */
	struct open_executions open_executions; /* ... and was not seen to end */
	struct store *store;                    /* records of sandboxes, idempotency keys */
	int ledger_dir, spool_dir;  /* below the state directory, opened before the jail */
	struct spool_bank spools;   /* output beyond what answers return */
	struct stream_bank streams; /* events of streamed executions */
	struct secrets secrets;     /* for sandboxes that ask for them */
	struct sandbox *sandboxes;  /* named and anonymous, all that live */
	size_t n_sandboxes, n_cells, n_busy, n_queued;
	size_t n_proxied; /* through ports of all sandboxes */
	struct mcp mcp;
	struct mounts mounts;              /* of the operator's, for every sandbox */
	struct workspaces workspaces;      /* directories that outlive sandboxes */
	struct packages packages;          /* what sandboxes can import beyond their image */
	struct jsession *jupyter_sessions; /* notebooks and their kernels */
	struct upstreams upstreams;        /* the MCP servers behind the bridge */
	struct approval *approvals;        /* calls that wait for a person (code/approval.h) */
	struct http_config http;
	struct listener *listeners[2];
	size_t files_max; /* how many descriptors we may have */
	size_t conns_max;
	struct watch signals;
	struct systemd systemd; /* the service manager, if one started us */
	struct timer drain_timer;
	struct timer forget_timer; /* old idempotency keys */
	uint64_t drain_until_ns;
	unsigned int told, passed_on; /* to end: to us, and by the keeper */
	bool draining, failed;
	struct jail_report jail;
	uint64_t started_ns, started_ms; /* the second since 1970 */
};

#endif
