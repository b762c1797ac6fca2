/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - Seeing that a file of a sandbox changes, for everybody of its owner who subscribed to
 * it.
 *
 * A watch is a process of the cell: it ends with the cell, and then says nothing any more. News of
 * the same moment are told once (mcp_resource_updated()).
 */
#ifndef CAISSON_FRONT_MCP_WATCH_H
#define CAISSON_FRONT_MCP_WATCH_H

struct mcp;
struct refusal;

/* Once: changes are seen from now on; or, with @why, none ever will be. */
typedef void mcp_watched_fn(void *arg, const struct refusal *why);

/* mcp_watch_begin() - Unless there is one already. @fn may be NULL, and may be called at once. */
void mcp_watch_begin(struct mcp *mcp, const char *owner, const char *uri, mcp_watched_fn *fn,
		     void *arg);
/* mcp_watch_forget() - Do not call the function of this @arg any more. */
void mcp_watch_forget(struct mcp *mcp, const void *arg);
/* mcp_watches_sweep() - End those that nobody wants any more. */
void mcp_watches_sweep(struct mcp *mcp);

#endif
