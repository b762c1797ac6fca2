/* SPDX-License-Identifier: Apache-2.0 */
/* routes_jupyter.c - The Jupyter Kernel Gateway's. Jupyter documents it, and its clients expect its
 * laxity: not in OpenAPI. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

static const struct response_doc responses[] = { { 200, "As Jupyter has it.", NULL, NULL }, { 0 } };

#define PARAM(name_, text_)                                                                        \
	{                                                                                          \
		.name = (name_), .kind = FIELD_STRING, .required = true, .description = (text_),   \
		.example = "\"0b6c9d5e-4a57-4c6c-9f0e-7f2f5d6c1a11\""                              \
	}
static const struct field spec_params[] = { PARAM("name", "Name of a kernelspec."), { 0 } };
static const struct field kernel_params[] = { PARAM("kernel_id", "Id of a kernel."), { 0 } };
static const struct field session_params[] = { PARAM("session_id", "Id of a session."), { 0 } };

#define ROW(method_, path_, params_, id_, summary_, handler_)                                      \
	{                                                                                          \
		.method = (method_), .path = (path_), .id = (id_), .summary = (summary_),          \
		.description = (summary_), .tag = "jupyter", .raw = true, .hidden = true,          \
		.url_token = true, .params = (params_), .responses = responses,                    \
		.handler = (handler_)                                                              \
	}

static const struct route rows[] = {
	ROW("GET", "/api", NULL, "jupyterApi", "The version of the Jupyter API",
	    handle_jupyter_api),
	ROW("GET", "/api/kernelspecs", NULL, "jupyterSpecs", "The kinds of kernels",
	    handle_jupyter_specs),
	ROW("GET", "/api/kernelspecs/{name}", spec_params, "jupyterSpec", "A kind of kernels",
	    handle_jupyter_spec),
	ROW("GET", "/api/status", NULL, "jupyterStatus",
	    "How many kernels and connections there are", handle_jupyter_status),
	ROW("GET", "/api/kernels", NULL, "jupyterKernels", "Your running sandboxes, as kernels",
	    handle_jupyter_kernels),
	ROW("POST", "/api/kernels", NULL, "jupyterKernelStart", "A sandbox with a kernel",
	    handle_jupyter_kernel_start),
	ROW("GET", "/api/kernels/{kernel_id}", kernel_params, "jupyterKernel", "One of them",
	    handle_jupyter_kernel),
	ROW("DELETE", "/api/kernels/{kernel_id}", kernel_params, "jupyterKernelEnd", "Remove it",
	    handle_jupyter_kernel_end),
	ROW("POST", "/api/kernels/{kernel_id}/interrupt", kernel_params, "jupyterInterrupt",
	    "Interrupt what runs", handle_jupyter_interrupt),
	ROW("POST", "/api/kernels/{kernel_id}/restart", kernel_params, "jupyterRestart",
	    "A new interpreter", handle_jupyter_restart),
	ROW("GET", "/api/kernels/{kernel_id}/channels", kernel_params, "jupyterChannels",
	    "Its messages, over a WebSocket", handle_jupyter_channels),
	ROW("GET", "/api/sessions", NULL, "jupyterSessions", "Notebooks and their kernels",
	    handle_jupyter_sessions),
	ROW("POST", "/api/sessions", NULL, "jupyterSessionStart", "A kernel for a notebook",
	    handle_jupyter_session_start),
	ROW("GET", "/api/sessions/{session_id}", session_params, "jupyterSession", "One of them",
	    handle_jupyter_session),
	ROW("PATCH", "/api/sessions/{session_id}", session_params, "jupyterSessionChange",
	    "Another name or kernel", handle_jupyter_session_change),
	ROW("DELETE", "/api/sessions/{session_id}", session_params, "jupyterSessionEnd",
	    "Remove it and its kernel", handle_jupyter_session_end),
	{ 0 },
};

const struct route_table routes_jupyter = { rows, NULL };
