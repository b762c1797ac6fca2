/* SPDX-License-Identifier: Apache-2.0 */
/* hooks.c - Which part does what in the life of a sandbox. */
#include "front/main/hooks.h"

#include "front/api/port_admit.h"
#include "front/cell/cell.h"
#include "front/egress/egress.h"
#include "front/http/serve.h"
#include "front/jupyter/jupyter.h"
#include "front/mcp/metadata.h"
#include "front/mcp/subscribe.h"
#include "front/packages/packages.h"
#include "front/ports/port_head.h"
#include "front/ports/ports.h"
#include "front/sandbox/hooks.h"
#include "front/secrets/secrets.h"
#include "front/tool_calls/audit_tool.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/rpc.h"
#include "front/workspaces/workspaces.h"

const struct cell_hooks cell_hooks = { .mounts = packages_mounts };

const struct serve_hooks serve_hooks = {
	.admit_port = port_admit,
	.own_path = port_own_path,
	.challenge = mcp_metadata_url,
};

const struct sandbox_hooks sandbox_hooks = {
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
	.wires.late_output = jupyter_late_output,
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
