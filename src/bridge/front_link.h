/* SPDX-License-Identifier: Apache-2.0 */
/* front_link.h - The bridge's end of the socket to the front (docs/protocol/bridge.md). */
#ifndef CAISSON_BRIDGE_FRONT_LINK_H
#define CAISSON_BRIDGE_FRONT_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "client/packet.h"
#include "net/loop.h"

struct err;

struct front_link {
	struct watch watch;
	struct packet_queue out;
	struct buf head, body;
	void (*on_request)(struct front_link *o, const json_t *head, struct buf *body);
	/* The front is gone, or makes no sense. */
	void (*on_end)(struct front_link *o);
	void *arg;
};

/* front_link_open() - Functions and arg are filled by the caller. */
int front_link_open(struct front_link *o, struct loop *loop, int fd, struct err *e);
void front_link_close(struct front_link *o);

/* front_link_send() - @head: the reference is taken; NULL (no memory) is dropped. @body: JSON text,
 * or NULL. */
void front_link_send(struct front_link *o, json_t *head, const char *body, size_t len);

/* front_link_error() - The end of a call. @hint: or NULL. */
void front_link_error(struct front_link *o, uint64_t id, const char *code, const char *message,
		      const char *hint);

/* front_link_result() - The end of a call. A result that cannot be passed on becomes an error. */
void front_link_result(struct front_link *o, uint64_t id, bool is_error, const char *text,
		       size_t len);

#endif
