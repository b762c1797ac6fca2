/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extra.h - Tools, prompts and resources that are linked in beside the daemon's own.
 *
 * The installed daemon has none (extra.c). The program that the protocol's conformance suite tests
 * differs in this object alone: it defines mcp_extra itself (tests/mcp/fixtures), and the linker
 * leaves ours out.
 */
#ifndef CAISSON_FRONT_MCP_EXTRA_H
#define CAISSON_FRONT_MCP_EXTRA_H

struct mcp_prompt;
struct mcp_resource;
struct mcp_tool;

struct mcp_extra {
	const struct mcp_tool *const *tools; /* tables, ends with NULL */
	const struct mcp_prompt *prompts;
	const struct mcp_resource *resources;
};

/* Either all of it is there, or none. */
extern const struct mcp_extra mcp_extra;

#endif
