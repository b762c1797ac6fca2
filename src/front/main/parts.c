/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.c - The parts of the daemon, one of each, and how they are tied together.
 *
 * A part includes only those below it (tools/check-layers.py). Where a lower part has to call an
 * upper one, it has a table of functions, and the tables are filled here.
 */
#include "front/main/parts.h"

#include "front/api/port_admit.h"
#include "front/buckets/buckets.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/cell/keep.h"
#include "front/cell/warden_link.h"
#include "front/egress/egress.h"
#include "front/gate/gate_link.h"
#include "front/http/serve.h"
#include "front/http/systemd.h"
#include "front/jupyter/jupyter.h"
#include "front/mcp/mcp.h"
#include "front/mcp/metadata.h"
#include "front/mcp/subscribe.h"
#include "front/output/spool.h"
#include "front/output/stream_log.h"
#include "front/packages/packages.h"
#include "front/policy/policy.h"
#include "front/ports/port_head.h"
#include "front/ports/ports.h"
#include "front/sandbox/adopt.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/open_executions.h"
#include "front/sandbox/sandbox.h"
#include "front/secrets/secrets.h"
#include "front/support/front.h"
#include "front/support/jail.h"
#include "front/support/mounts.h"
#include "front/tool_calls/audit_tool.h"
#include "front/tool_calls/bridge_link.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/rpc.h"
#include "front/tool_calls/upstream.h"
#include "front/workspaces/workspaces.h"
#include "net/http.h"

static const struct cell_hooks cell_hooks = { .mounts = packages_mounts };

const struct serve_hooks serve_hooks = {
	.admit_port = port_admit,
	.own_path = port_own_path,
	.challenge = mcp_metadata_url,
};

static const struct sandbox_hooks sandbox_hooks = {
	.egress.ready = egress_ready,
	.egress.install = egress_install,
	.egress.drop = egress_drop,
	.egress.free = egress_free,
	.egress.hint = egress_hint,
	.workspace.admit = workspaces_admit,
	.workspace.ready = workspaces_ready,
	.workspace.left = workspaces_left,
	.packages.tell = packages_tell,
	.packages.env = packages_env,
	.packages.request = packages_request,
	.packages.left = packages_left,
	.wires.kernel_ended = jupyter_kernel_ended,
	.wires.cell_gone = jupyter_cell_gone,
	.wires.background_output = jupyter_background_output,
	.wires.ended = jupyter_sandbox_ended,
	.tools.cancel = rpc_end,
	.tools.message = rpc_message,
	.tools.stray = rpc_stray,
	.tools.drained = rpc_drained,
	.tools.write = code_write,
	.tools.close = code_close,
	.tools.over = audit_tools_over,
	.close_ports = ports_close,
	.wires.changed = mcp_sandboxes_changed,
	.secrets.give = secrets_give,
	.secrets.take = secrets_take,
};

struct front *parts_make(void)
{
	static struct adopt adopt;
	static struct bridge_link bridge;
	static struct buckets buckets = { .fd = -1 };
	static struct drivers drivers;
	static struct gate_link gate;
	static struct http_config http;
	static struct images images;
	static struct jail_report jail;
	static struct keep keep;
	static struct mcp mcp;
	static struct mounts mounts;
	static struct open_executions open_executions;
	static struct packages packages;
	static struct policy_now policy = { .count = sandboxes_count };
	static struct secrets secrets = { .roots = -1 };
	static struct spool_bank spools;
	static struct stream_bank streams = { .max = STREAM_BANK_BYTES };
	static struct systemd systemd;
	static struct upstreams upstreams;
	static struct warden_link link;
	static struct workspaces workspaces;
	static struct front f = {
		.adopt = &adopt,
		.bridge = &bridge,
		.buckets = &buckets,
		.cell_hooks = &cell_hooks,
		.drivers = &drivers,
		.gate = &gate,
		.hooks = &sandbox_hooks,
		.http = &http,
		.images = &images,
		.jail = &jail,
		.keep = &keep,
		.link = &link,
		.mcp = &mcp,
		.mounts = &mounts,
		.open_executions = &open_executions,
		.packages = &packages,
		.policy = &policy,
		.secrets = &secrets,
		.server_name = upstream_name,
		.spools = &spools,
		.streams = &streams,
		.systemd = &systemd,
		.upstreams = &upstreams,
		.workspaces = &workspaces,
	};

	return &f;
}
