/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.c - The parts of the daemon, one of each, and how they are tied together.
 *
 * A part includes only those below it (tools/check-layers.py), and its state points to those that
 * it uses. Where a lower part has to call an upper one, it has a table of functions with the state
 * that they need; the tables are filled here.
 */
#include "front/main/parts.h"

#include "front/api/await_image.h"
#include "front/api/find_sandbox.h"
#include "front/api/port_admit.h"
#include "front/mcp/metadata.h"
#include "front/mcp/subscribe.h"
#include "front/packages/tools.h"
#include "front/ports/port_head.h"
#include "front/ports/ports.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/tool_calls/audit_tool.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/rpc.h"

static struct parts all;

static const struct cell_hooks cell_hooks = {
	.mounts = packages_mounts,
	.packages = &all.packages,
};

static const struct serve_hooks serve_hooks = {
	.own_sandbox = own_sandbox,
	.ready = await_image_field,
	.admit_port = port_admit,
	.own_path = port_own_path,
	.challenge = mcp_metadata_url,
};

static const struct sandbox_hooks sandbox_hooks = {
	.egress.part = &all.egresses,
	.egress.ready = egress_ready,
	.egress.install = egress_install,
	.egress.drop = egress_drop,
	.egress.free = egress_free,
	.egress.hint = egress_hint,
	.workspace.part = &all.workspaces,
	.workspace.admit = workspaces_admit,
	.workspace.ready = workspaces_ready,
	.workspace.left = workspaces_left,
	.packages.part = &all.packages,
	.packages.tell = packages_tell,
	.packages.env = packages_env,
	.packages.request = packages_request,
	.packages.left = packages_left,
	.packages.listen = tools_listen,
	.packages.unlisten = tools_unlisten,
	.wires.kernel_ended = jupyter_kernel_ended,
	.wires.cell_gone = jupyter_cell_gone,
	.wires.background_output = jupyter_background_output,
	.wires.ended = jupyter_sandbox_ended,
	.tools.part = &all.tool_calls,
	.tools.cancel = rpc_end,
	.tools.message = rpc_message,
	.tools.stray = rpc_stray,
	.tools.drained = rpc_drained,
	.tools.write = code_write,
	.tools.close = code_close,
	.tools.over = audit_tools_over,
	.close_ports = ports_close,
	.wires.mcp = &all.mcp,
	.wires.changed = mcp_sandboxes_changed,
	.secrets.part = &all.secrets,
	.secrets.give = secrets_give,
	.secrets.take = secrets_take,
};

static struct parts all = {
	.cells = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.link = &all.link,
		.keep = &all.keep,
		.drivers = &all.drivers,
		.images = &all.images,
		.mounts = &all.mounts,
		.hooks = &cell_hooks,
	},
	.admission = {
		.cells = &all.cells,
		.policy = &all.policy,
		.count = sandboxes_count,
		.sandboxes = &all.sandboxes,
		.server_name = upstream_name,
		.tool_calls = &all.tool_calls,
	},
	.pulls = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.cells = &all.cells,
		.admission = &all.admission,
	},
	.streams = { .max = STREAM_BANK_BYTES },
	.sandboxes = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.cells = &all.cells,
		.admission = &all.admission,
		.hooks = &sandbox_hooks,
		.adopt = &all.adopt,
		.open_executions = &all.open_executions,
		.spools = &all.spools,
		.streams = &all.streams,
	},
	.secrets = { .daemon = &all.daemon, .gate = &all.gate, .roots = -1 },
	.egresses = {
		.sandboxes = &all.sandboxes,
		.gate = &all.gate,
		.secrets = &all.secrets,
	},
	.packages = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.sandboxes = &all.sandboxes,
		.secrets = &all.secrets,
	},
	.workspaces = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.sandboxes = &all.sandboxes,
		.buckets = &all.buckets,
	},
	.buckets = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.workspaces = &all.workspaces,
		.fd = -1,
	},
	.tool_calls = { .loop = &all.daemon.loop, .bridge = &all.bridge },
	.services = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.cells = &all.cells,
		.sandboxes = &all.sandboxes,
		.gate = &all.gate,
		.pulls = &all.pulls,
		.packages = &all.packages,
		.workspaces = &all.workspaces,
		.buckets = &all.buckets,
		.tool_calls = &all.tool_calls,
	},
	.server = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.keep = &all.keep,
		.systemd = &all.systemd,
		.hooks = &serve_hooks,
		.services = &all.services,
		.mcp = &all.mcp,
		.notebooks = &all.notebooks,
	},
	.notebooks = { .sandboxes = &all.sandboxes },
	.mcp = {
		.daemon = &all.daemon,
		.loop = &all.daemon.loop,
		.sandboxes = &all.sandboxes,
		.services = &all.services,
	},
};

struct parts *parts_make(void)
{
	return &all;
}
