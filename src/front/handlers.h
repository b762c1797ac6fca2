/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers.h - What the routes call: one function per row of the tables (routes.h).
 *
 * A handler is called when the request is complete, the caller was let in, and the query holds only
 * declared parameters. It answers exactly once, now or later (net/http.h). @p is valid during the
 * call only.
 */
#ifndef CAISSON_FRONT_HANDLERS_H
#define CAISSON_FRONT_HANDLERS_H

struct front;
struct http_exchange;
struct route_params;

/* Whoever defines it before means something else by the same list: tests, empty functions. */
#ifndef HANDLER
#define HANDLER(name)                                                                              \
	void name(struct front *f, struct http_exchange *x, const struct route_params *p)
#endif

HANDLER(handle_execute);
HANDLER(handle_execute_ws);
HANDLER(handle_pip_install);
HANDLER(handle_sessions);          /* GET /sessions */
HANDLER(handle_session_end);       /* DELETE /sessions/{session_id} */
HANDLER(handle_session_interrupt); /* POST /sessions/{session_id}/interrupt */
HANDLER(handle_health);

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

/* handle_exec.c, handle_processes.c, attach.c: below /v1/sandboxes/{name} */
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

/* These need no state of the daemon (handle_docs.c). */
HANDLER(handle_root);
HANDLER(handle_docs); /* the page and its assets */
HANDLER(handle_openapi);
HANDLER(handle_metrics);

#endif
