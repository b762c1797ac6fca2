/* SPDX-License-Identifier: Apache-2.0 */
/* tool_image.h - Calls of tools that name an image: they begin when it is there. */
#ifndef CAISSON_FRONT_MCP_TOOL_IMAGE_H
#define CAISSON_FRONT_MCP_TOOL_IMAGE_H

#include <jansson.h>
#include <stdbool.h>

struct mcp_call;
struct mcp_tool;

/* mcp_tool_ready() - Whether @t may run now. False: the call was answered, or @t runs later, unless
 * the call is cancelled or the image cannot be pulled. */
bool mcp_tool_ready(struct mcp_call *c, const struct mcp_tool *t, json_t *args);

#endif
