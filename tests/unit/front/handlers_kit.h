/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers_kit.h - Handlers that do nothing, for tests of the table that names them: it can then be
 * linked without the daemon behind it. To be included by one source of a program.
 */
#ifndef CAISSON_TESTS_HANDLERS_KIT_H
#define CAISSON_TESTS_HANDLERS_KIT_H

#include "front/handlers.h"

#define KIT_HANDLER(name)                                                                          \
	HANDLER(name)                                                                              \
	{                                                                                          \
		(void)f;                                                                           \
		(void)x;                                                                           \
		(void)p;                                                                           \
	}

KIT_HANDLER(handle_execute)
KIT_HANDLER(handle_execute_ws)
KIT_HANDLER(handle_pip_install)
KIT_HANDLER(handle_sessions)
KIT_HANDLER(handle_session_end)
KIT_HANDLER(handle_session_interrupt)
KIT_HANDLER(handle_health)
KIT_HANDLER(handle_root)
KIT_HANDLER(handle_docs)
KIT_HANDLER(handle_openapi)
KIT_HANDLER(handle_metrics)

#endif
