/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - All parts of the daemon, one of each, and how they are tied together.
 *
 * Only this directory sees all of them. Every other function gets the state of its own part, which
 * points to the parts below it.
 */
#ifndef CAISSON_FRONT_MAIN_PARTS_H
#define CAISSON_FRONT_MAIN_PARTS_H

#include "front/buckets/buckets.h"
#include "front/cell/cell.h"
#include "front/cell/cells.h"
#include "front/cell/image_use.h"
#include "front/cell/keep.h"
#include "front/cell/warden_link.h"
#include "front/egress/egress.h"
#include "front/gate/gate_link.h"
#include "front/http/serve.h"
#include "front/http/systemd.h"
#include "front/images/pulls.h"
#include "front/jupyter/jupyter.h"
#include "front/mcp/mcp.h"
#include "front/operations/services.h"
#include "front/output/spool.h"
#include "front/output/stream_log.h"
#include "front/packages/packages.h"
#include "front/policy/policy.h"
#include "front/sandbox/adopt.h"
#include "front/sandbox/open_executions.h"
#include "front/sandbox/sandboxes.h"
#include "front/secrets/secrets.h"
#include "front/spec/admission.h"
#include "front/support/daemon.h"
#include "front/support/mounts.h"
#include "front/tool_calls/bridge_link.h"
#include "front/tool_calls/tool_calls.h"
#include "front/workspaces/workspaces.h"

struct parts {
	struct daemon daemon;

	/* Cells. */
	struct warden_link link;
	struct keep keep;
	struct drivers drivers;
	struct images images;
	struct mounts mounts;
	struct cells cells;
	struct pulls pulls;

	/* Sandboxes. */
	struct policy_now policy;
	struct admission admission;
	struct adopt adopt;
	struct open_executions open_executions;
	struct spool_bank spools;
	struct stream_bank streams;
	struct sandboxes sandboxes;

	/* Features of sandboxes. */
	struct gate_link gate;
	struct secrets secrets;
	struct egresses egresses;
	struct packages packages;
	struct workspaces workspaces;
	struct buckets buckets;
	struct bridge_link bridge;
	struct tool_calls tool_calls;

	/* Wires. */
	struct services services;
	struct systemd systemd;
	struct server server;
	struct notebooks notebooks;
	struct mcp mcp;
};

/* parts_make() - The parts of this process, tied together and otherwise zero. */
struct parts *parts_make(void);

#endif
