/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - Events of the stream of a request, kept for a legacy client that lost the stream and
 * comes back for the rest: GET with Last-Event-ID.
 *
 * For clients of 2025-11-25 and later, which understand the first event, an empty one. Kept with
 * the session, for some minutes after the last event, and bounded: a stream with an event that does
 * not fit cannot be resumed.
 */
#ifndef CAISSON_FRONT_MCP_REPLAY_H
#define CAISSON_FRONT_MCP_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct http_exchange;
struct mcp_replay;
struct mcp_session;

#define MCP_EVENT_ID 48

/* mcp_replay_begin() - A new stream. NULL: the session's client does not know them, or no memory.
 */
struct mcp_replay *mcp_replay_begin(struct mcp_session *s, void *speaker);
/* mcp_replay_add() - An event; @json is copied. */
void mcp_replay_add(struct mcp_replay *r, const struct buf *json);
/* mcp_replay_id() - Of the last event. */
void mcp_replay_id(const struct mcp_replay *r, char id[MCP_EVENT_ID]);
/* mcp_replay_end() - That was all. */
void mcp_replay_end(struct mcp_replay *r);

/* mcp_replay_find() - The stream of an event, and how many came up to it; NULL: it is not kept. */
struct mcp_replay *mcp_replay_find(struct mcp_session *s, const char *id, size_t *seen);
/* mcp_replay_send() - All events after the first @seen, on an open stream. */
void mcp_replay_send(const struct mcp_replay *r, struct http_exchange *x, size_t seen);
/* mcp_replay_speaker() - The POST that goes on with it; NULL: it has ended. */
void *mcp_replay_speaker(const struct mcp_replay *r);

/* mcp_replays_free() - With their session, when nobody speaks any more. */
void mcp_replays_free(struct mcp_session *s);

#endif
