/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers_kit.h - Handlers that do nothing, one for each in front/api/handlers.h, for tests of the
 * tables that name them: these can then be linked without the daemon behind it. To be included by
 * one source of a program, and first.
 */
#ifndef CAISSON_TESTS_HANDLERS_KIT_H
#define CAISSON_TESTS_HANDLERS_KIT_H

#ifdef CAISSON_FRONT_HANDLERS_H
#error "include this before front/api/handlers.h"
#endif

struct http_exchange;
struct mcp;
struct notebooks;
struct sandbox;
struct services;

#define HANDLER_OF(state, name)                                                                    \
	void name(struct state *state, struct http_exchange *x);                                   \
	void name(struct state *state, struct http_exchange *x)                                    \
	{                                                                                          \
		(void)state;                                                                       \
		(void)x;                                                                           \
	}                                                                                          \
	struct state /* takes the semicolon */

#include "front/api/handlers.h"

#endif
