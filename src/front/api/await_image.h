/* SPDX-License-Identifier: Apache-2.0 */
/*
 * await_image.h - Requests over HTTP that name an image: they begin when it is there.
 *
 * A request that asked for events gets the progress of the pull as events of the type `progress`,
 * before its own. The id of its execution is announced with them.
 */
#ifndef CAISSON_FRONT_API_AWAIT_IMAGE_H
#define CAISSON_FRONT_API_AWAIT_IMAGE_H

#include <stdbool.h>

#include "front/images/pulls.h"

struct http_exchange;
struct services;

/* A request that waits: the first member of the caller's own struct, which is on the heap. */
struct image_await {
	/* The image is there: handle the request. release follows. */
	void (*again)(struct image_await *a, struct http_exchange *x);
	void (*release)(struct image_await *a);
	struct pull_wait wait;
	struct http_exchange *x;
};

/*
 * await_image() - Whether the request may go on now. False: it was answered, or a->again is called
 * later, unless the client leaves or the image cannot be pulled.
 * @image: NULL: it names none
 * @a: zero but for the functions; it is released when the wait is over, or if none begins
 */
bool await_image(struct services *services, struct http_exchange *x, const char *image,
		 struct image_await *a);

/* await_image_field() - For serve_hooks: the image that a checked body names. */
bool await_image_field(struct services *services, struct http_exchange *x);

#endif
