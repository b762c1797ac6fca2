/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - How a Jupyter message is put into a WebSocket message. There are two ways; the client
 * chooses when it connects.
 *
 * FRAME_JSON, the default: one JSON object that has everything and names its channel, as text. With
 * buffers it is binary: u32 n, then n u32 offsets from the start (both big-endian) of the object
 * and of each buffer. FRAME_V1, subprotocol v1.kernel.websocket.jupyter.org: always binary: u64 n,
 * then n u64 offsets (little-endian) of the channel's name, header, parent header, metadata,
 * content and each buffer; the last offset is the length.
 *
 * Nothing is parsed but the offsets, and nothing is copied.
 */
#ifndef CAISSON_JUPYTER_FRAME_H
#define CAISSON_JUPYTER_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define FRAME_V1_PROTOCOL "v1.kernel.websocket.jupyter.org"
#define FRAME_BUFFERS_MAX 1024u

enum frame_kind { FRAME_JSON, FRAME_V1 };

struct frame_part {
	const char *data; /* into the message */
	size_t len;
};

struct frame {
	struct frame_part whole; /* FRAME_JSON: the object; the others are empty */
	struct frame_part channel, header, parent, metadata, content; /* FRAME_V1 */
	size_t n_buffers;
};

/* frame_split() - @text: whether it came as text. NULL, or what is wrong with it (static). Pure. */
const char *frame_split(enum frame_kind kind, bool text, const char *data, size_t len,
			struct frame *ret);

/* A message to be sent: JSON texts, and two values that clients expect beside the header. */
struct frame_message {
	const char *channel, *type, *id;
	struct frame_part header, parent, metadata, content;
};

/* frame_join() - Append it to @out: text for FRAME_JSON, binary for FRAME_V1. 0 or out->err. */
int frame_join(enum frame_kind kind, const struct frame_message *m, struct buf *out);

#endif
