/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operation.h - An operation of the daemon, declared once for every wire: name, words, fields with
 * their limits, and conditions.
 *
 * A route (http/route.h) adds method, path and responses to an operation, a tool (mcp/tool.h) its
 * hints and the schema of its result. The OpenAPI document and tools/list are written from both.
 * Operations of more than one wire are in front/operations; others stand in the row that uses them.
 */
#ifndef CAISSON_FRONT_OPERATION_H
#define CAISSON_FRONT_OPERATION_H

#include "front/support/field.h"

struct operation {
	const char *name; /* operationId, and the name of the tool unless `tool` has another */
	const char *summary, *description;
	const struct field *fields; /* of all wires; ends with name NULL; may be NULL */
	bool work;                  /* must be recorded before it is done, which may fail: 503 */
	bool keyed;                 /* takes an Idempotency-Key over HTTP */
	/* For the tool, where it differs: NULL: name, summary, description. */
	const char *tool, *title, *tool_description;
};

#define OPERATION(...) (&(const struct operation){ __VA_ARGS__ })

#endif
