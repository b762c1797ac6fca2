/* SPDX-License-Identifier: Apache-2.0 */
/* outlet.h - The bridge's end of the line to the front (docs/protocol/bridge.md). */
#ifndef CAISSON_BRIDGE_OUTLET_H
#define CAISSON_BRIDGE_OUTLET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "client/packet.h"
#include "net/loop.h"

struct err;

struct outlet {
	struct watch watch;
	struct packet_queue out;
	struct buf head, body;
	void (*on_request)(struct outlet *o, const json_t *head, struct buf *body);
	/* The front is gone, or makes no sense. */
	void (*on_end)(struct outlet *o);
	void *arg;
};

/* outlet_open() - Functions and arg are filled by the caller. */
int outlet_open(struct outlet *o, struct loop *loop, int fd, struct err *e);
void outlet_close(struct outlet *o);

/* outlet_say() - @head: a reference that is taken; NULL for want of memory is dropped. @body: JSON
 * text, or NULL. */
void outlet_say(struct outlet *o, json_t *head, const char *body, size_t len);

/* outlet_error() - The end of a call. @hint: or NULL. */
void outlet_error(struct outlet *o, uint64_t id, const char *code, const char *message,
		  const char *hint);

/* outlet_result() - The end of a call, as well. What can not be passed on becomes an error. */
void outlet_result(struct outlet *o, uint64_t id, bool is_error, const char *text, size_t len);

#endif
