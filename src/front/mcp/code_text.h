/* SPDX-License-Identifier: Apache-2.0 */
/* code_text.h - The blocks of a tool's result that are about an execution: text, then pictures. */
#ifndef CAISSON_FRONT_MCP_CODE_TEXT_H
#define CAISSON_FRONT_MCP_CODE_TEXT_H

#include <jansson.h>

struct execution;
struct mcp_output;

/* Two streams of at most max_output characters, escaped, and what comes beside them. */
#define MCP_CODE_TEXT_MAX(f) ((size_t)(f)->config.max_output * 2 * 6 + (1u << 20))

/* mcp_code_text() - @result: the bundle of a last expression, or NULL. */
void mcp_code_text(const struct execution *x, const json_t *result, struct mcp_output *o);
/* mcp_code_images() - Those that it showed, and the result if that is one. */
void mcp_code_images(const struct execution *x, const json_t *result, struct mcp_output *o);
/* mcp_code_plain() - The text of a bundle, or NULL. */
const char *mcp_code_plain(const json_t *bundle);

#endif
