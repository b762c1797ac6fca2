/* SPDX-License-Identifier: Apache-2.0 */
/* routes_jupyter.c - The Jupyter Kernel Gateway's. Jupyter documents it, and its clients expect its
 * laxity: not in OpenAPI. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define PARAM(name_, text_)                                                                        \
	FIELDS(FIELD(IN_PATH, STRING, name_, 0, 0, text_, .required = true,                        \
		     .example = "\"0b6c9d5e-4a57-4c6c-9f0e-7f2f5d6c1a11\""))
#define SPEC PARAM("name", "Name of a kernelspec.")
#define KERNEL PARAM("kernel_id", "Id of a kernel.")
#define SESSION PARAM("session_id", "Id of a session.")

#define ROW(method_, path_, fields_, name_, summary_, handler_)                                    \
	{                                                                                          \
		.method = (method_), .path = (path_), .tag = "jupyter",                            \
		.handler.jupyter = (handler_),                                                     \
		.op = OPERATION((name_), (summary_), (summary_), (fields_)),                       \
		.responses = RESPONSES(RESPONSE(200, NULL, "As Jupyter has it.")), .raw = true,    \
		.hidden = true, .url_token = true                                                  \
	}

const struct route routes_jupyter[] = {
	ROW("GET", "/api", NULL, "jupyterApi", "The version of the Jupyter API",
	    handle_jupyter_api),
	ROW("GET", "/api/kernelspecs", NULL, "jupyterSpecs", "The kinds of kernels",
	    handle_jupyter_specs),
	ROW("GET", "/api/kernelspecs/{name}", SPEC, "jupyterSpec", "A kind of kernels",
	    handle_jupyter_spec),
	ROW("GET", "/api/status", NULL, "jupyterStatus",
	    "How many kernels and connections there are", handle_jupyter_status),
	ROW("GET", "/api/kernels", NULL, "jupyterKernels", "Your running sandboxes, as kernels",
	    handle_jupyter_kernels),
	ROW("POST", "/api/kernels", NULL, "jupyterKernelStart", "A sandbox with a kernel",
	    handle_jupyter_kernel_start),
	ROW("GET", "/api/kernels/{kernel_id}", KERNEL, "jupyterKernel", "One of them",
	    handle_jupyter_kernel),
	ROW("DELETE", "/api/kernels/{kernel_id}", KERNEL, "jupyterKernelEnd", "Remove it",
	    handle_jupyter_kernel_end),
	ROW("POST", "/api/kernels/{kernel_id}/interrupt", KERNEL, "jupyterInterrupt",
	    "Interrupt what runs", handle_jupyter_interrupt),
	ROW("POST", "/api/kernels/{kernel_id}/restart", KERNEL, "jupyterRestart",
	    "A new interpreter", handle_jupyter_restart),
	ROW("GET", "/api/kernels/{kernel_id}/channels", KERNEL, "jupyterChannels",
	    "Its messages, over a WebSocket", handle_jupyter_channels),
	ROW("GET", "/api/sessions", NULL, "jupyterSessions", "Notebooks and their kernels",
	    handle_jupyter_sessions),
	ROW("POST", "/api/sessions", NULL, "jupyterSessionStart", "A kernel for a notebook",
	    handle_jupyter_session_start),
	ROW("GET", "/api/sessions/{session_id}", SESSION, "jupyterSession", "One of them",
	    handle_jupyter_session),
	ROW("PATCH", "/api/sessions/{session_id}", SESSION, "jupyterSessionChange",
	    "Another name or kernel", handle_jupyter_session_change),
	ROW("DELETE", "/api/sessions/{session_id}", SESSION, "jupyterSessionEnd",
	    "Remove it and its kernel", handle_jupyter_session_end),
	{ 0 },
};
