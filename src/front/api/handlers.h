/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers.h - The handlers of the routes: one function per row of the tables (routes.h).
 *
 * A handler is called when the request is complete, the caller was let in, and the fields of the
 * request are checked: context_text() and context_number() (http/serve.h) read them until it
 * returns. A handler of a sandbox gets the caller's sandbox that the path names. It answers exactly
 * once, now or later (net/http.h).
 */
#ifndef CAISSON_FRONT_HANDLERS_H
#define CAISSON_FRONT_HANDLERS_H

struct http_exchange;
struct mcp;
struct notebooks;
struct sandbox;
struct services;

/* A test that defines it first makes something else of the same list: empty functions. */
#ifndef HANDLER_OF
#define HANDLER_OF(state, name) void name(struct state *state, struct http_exchange *x)
#endif
#define HANDLER(name) HANDLER_OF(services, name)
#define SANDBOX_HANDLER(name) HANDLER_OF(sandbox, name)

HANDLER(handle_execute);
HANDLER(handle_execute_ws);
HANDLER(handle_pip_install);
SANDBOX_HANDLER(handle_packages_install);
SANDBOX_HANDLER(handle_packages_list);
HANDLER(handle_workspace_create);
HANDLER(handle_workspace_list);
HANDLER(handle_workspace_get);
HANDLER(handle_workspace_remove);
SANDBOX_HANDLER(handle_workspace_diff);
SANDBOX_HANDLER(handle_workspace_commit);
SANDBOX_HANDLER(handle_workspace_discard);
HANDLER(handle_sessions);          /* GET /sessions */
HANDLER(handle_session_end);       /* DELETE /sessions/{session_id} */
HANDLER(handle_session_interrupt); /* POST /sessions/{session_id}/interrupt */
HANDLER(handle_health);

HANDLER(handle_policy);
HANDLER(handle_sandbox_create);
HANDLER(handle_sandbox_list);
SANDBOX_HANDLER(handle_sandbox_get);
SANDBOX_HANDLER(handle_sandbox_remove);
SANDBOX_HANDLER(handle_sandbox_extend);
SANDBOX_HANDLER(handle_sandbox_stop);
SANDBOX_HANDLER(handle_sandbox_kill);
SANDBOX_HANDLER(handle_sandbox_interrupt);
SANDBOX_HANDLER(handle_sandbox_execute);
SANDBOX_HANDLER(handle_sandbox_logs);
HANDLER(handle_run_python);
HANDLER(handle_run_shell);

/* exec.c, handle_processes.c, attach.c: below /v1/sandboxes/{name} */
SANDBOX_HANDLER(handle_exec);
SANDBOX_HANDLER(handle_process_start);
SANDBOX_HANDLER(handle_process_list);
SANDBOX_HANDLER(handle_process_get);
SANDBOX_HANDLER(handle_process_remove);
SANDBOX_HANDLER(handle_process_signal);
SANDBOX_HANDLER(handle_process_stdin);
SANDBOX_HANDLER(handle_process_output);
SANDBOX_HANDLER(handle_process_wait);
SANDBOX_HANDLER(handle_process_attach);

/* handle_output.c, below /v1/sandboxes/{name}/executions */
SANDBOX_HANDLER(handle_executions);
SANDBOX_HANDLER(handle_execution);
SANDBOX_HANDLER(handle_execution_events);
SANDBOX_HANDLER(handle_execution_output);
SANDBOX_HANDLER(handle_execution_search);
SANDBOX_HANDLER(handle_execution_interrupt);

/* handle_egress.c */
SANDBOX_HANDLER(handle_egress_get);
SANDBOX_HANDLER(handle_egress_put);
SANDBOX_HANDLER(handle_net);

/* handle_ports.c, below /v1/sandboxes/{name}/ports */
SANDBOX_HANDLER(handle_ports);
SANDBOX_HANDLER(handle_port);
SANDBOX_HANDLER(handle_port_open);
SANDBOX_HANDLER(handle_port_close);
HANDLER(handle_port_pass); /* called with the head */

/* handle_files*.c, below /v1/sandboxes/{name}/files */
SANDBOX_HANDLER(handle_file_read);
SANDBOX_HANDLER(handle_file_write); /* called with the head */
SANDBOX_HANDLER(handle_file_delete);
SANDBOX_HANDLER(handle_file_list);
SANDBOX_HANDLER(handle_file_stat);
SANDBOX_HANDLER(handle_file_move);
SANDBOX_HANDLER(handle_file_mkdir);
SANDBOX_HANDLER(handle_file_tar_out);
SANDBOX_HANDLER(handle_file_tar_in); /* called with the head */
SANDBOX_HANDLER(handle_file_watch);
SANDBOX_HANDLER(handle_artifacts);

/* front/api/handle_servers.c */
HANDLER(handle_servers);
/* front/api/handle_approvals.c */
HANDLER(handle_approvals);
HANDLER(handle_approval_decide);

/* front/mcp/http.c: the Model Context Protocol */
HANDLER_OF(mcp, handle_mcp_post);
HANDLER_OF(mcp, handle_mcp_get);
HANDLER_OF(mcp, handle_mcp_delete);
HANDLER_OF(mcp, handle_mcp_sse);      /* front/mcp/sse.c */
HANDLER_OF(mcp, handle_mcp_ws);       /* front/mcp/websocket.c */
HANDLER_OF(mcp, handle_mcp_metadata); /* front/mcp/metadata.c */

/* front/jupyter/: what a Jupyter Kernel Gateway answers */
HANDLER_OF(notebooks, handle_jupyter_api);
HANDLER_OF(notebooks, handle_jupyter_specs);
HANDLER_OF(notebooks, handle_jupyter_spec);
HANDLER_OF(notebooks, handle_jupyter_status);
HANDLER_OF(notebooks, handle_jupyter_kernels);
HANDLER_OF(notebooks, handle_jupyter_kernel_start);
HANDLER_OF(notebooks, handle_jupyter_kernel);
HANDLER_OF(notebooks, handle_jupyter_kernel_end);
HANDLER_OF(notebooks, handle_jupyter_interrupt);
HANDLER_OF(notebooks, handle_jupyter_restart);
HANDLER_OF(notebooks, handle_jupyter_channels);
HANDLER_OF(notebooks, handle_jupyter_sessions);
HANDLER_OF(notebooks, handle_jupyter_session_start);
HANDLER_OF(notebooks, handle_jupyter_session);
HANDLER_OF(notebooks, handle_jupyter_session_change);
HANDLER_OF(notebooks, handle_jupyter_session_end);

/* These need no state of the daemon (handle_docs.c). */
HANDLER(handle_root);
HANDLER(handle_docs); /* the page and its assets */
HANDLER(handle_openapi);
HANDLER(handle_metrics);

#endif
