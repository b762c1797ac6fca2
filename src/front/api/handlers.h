/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers.h - The handlers of the routes: one function per row of the tables (routes.h).
 *
 * A handler is called when the request is complete, the caller was let in, and the query holds only
 * declared parameters. It answers exactly once, now or later (net/http.h).
 */
#ifndef CAISSON_FRONT_HANDLERS_H
#define CAISSON_FRONT_HANDLERS_H

struct http_exchange;
struct mcp;
struct notebooks;
struct services;

/* A test that defines it first makes something else of the same list: empty functions. */
#ifndef HANDLER_OF
#define HANDLER_OF(state, name) void name(struct state *state, struct http_exchange *x)
#endif
#define HANDLER(name) HANDLER_OF(services, name)

HANDLER(handle_execute);
HANDLER(handle_execute_ws);
HANDLER(handle_pip_install);
HANDLER(handle_packages_install);
HANDLER(handle_packages_list);
HANDLER(handle_workspace_create);
HANDLER(handle_workspace_list);
HANDLER(handle_workspace_get);
HANDLER(handle_workspace_remove);
HANDLER(handle_workspace_diff); /* of a sandbox, as those below it */
HANDLER(handle_workspace_commit);
HANDLER(handle_workspace_discard);
HANDLER(handle_sessions);          /* GET /sessions */
HANDLER(handle_session_end);       /* DELETE /sessions/{session_id} */
HANDLER(handle_session_interrupt); /* POST /sessions/{session_id}/interrupt */
HANDLER(handle_health);

HANDLER(handle_policy);
HANDLER(handle_sandbox_create);
HANDLER(handle_sandbox_list);
HANDLER(handle_sandbox_get);
HANDLER(handle_sandbox_remove);
HANDLER(handle_sandbox_extend);
HANDLER(handle_sandbox_stop);
HANDLER(handle_sandbox_kill);
HANDLER(handle_sandbox_interrupt);
HANDLER(handle_sandbox_execute);
HANDLER(handle_sandbox_logs);
HANDLER(handle_run_python);
HANDLER(handle_run_shell);

/* exec.c, handle_processes.c, attach.c: below /v1/sandboxes/{name} */
HANDLER(handle_exec);
HANDLER(handle_shell);
HANDLER(handle_process_start);
HANDLER(handle_process_list);
HANDLER(handle_process_get);
HANDLER(handle_process_remove);
HANDLER(handle_process_signal);
HANDLER(handle_process_stdin);
HANDLER(handle_process_output);
HANDLER(handle_process_wait);
HANDLER(handle_process_attach);

/* handle_output.c, below /v1/sandboxes/{name}/executions */
HANDLER(handle_executions);
HANDLER(handle_execution);
HANDLER(handle_execution_events);
HANDLER(handle_execution_output);
HANDLER(handle_execution_search);
HANDLER(handle_execution_interrupt);

/* handle_egress.c */
HANDLER(handle_egress_get);
HANDLER(handle_egress_put);
HANDLER(handle_net);

/* handle_ports.c, below /v1/sandboxes/{name}/ports */
HANDLER(handle_ports);
HANDLER(handle_port);
HANDLER(handle_port_open);
HANDLER(handle_port_close);
HANDLER(handle_port_pass); /* called with the head */

/* handle_files*.c, below /v1/sandboxes/{name}/files */
HANDLER(handle_file_read);
HANDLER(handle_file_write); /* called with the head */
HANDLER(handle_file_delete);
HANDLER(handle_file_list);
HANDLER(handle_file_stat);
HANDLER(handle_file_move);
HANDLER(handle_file_mkdir);
HANDLER(handle_file_tar_out);
HANDLER(handle_file_tar_in); /* called with the head */
HANDLER(handle_file_watch);
HANDLER(handle_artifacts);

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
