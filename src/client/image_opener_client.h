/* SPDX-License-Identifier: Apache-2.0 */
/* image_opener_client.h - The client of wire/image_opener.h: stored images, as descriptors. */
#ifndef CAISSON_CLIENT_IMAGE_OPENER_CLIENT_H
#define CAISSON_CLIENT_IMAGE_OPENER_CLIENT_H

#include <stddef.h>
#include <sys/types.h>

#include "wire/image_opener.h"
#include "wire/warden.h"

struct err;

/* The answer of the image opener about one image. Large; strings point into it. */
struct loan {
	struct image_opener_reply reply;
	int fds[CELL_IMAGE_FDS_MAX]; /* the lease, then the layers */
	size_t n_fds;
};

/*
 * image_opener_start() - Start caisson-image-opener.
 * @store: path; NULL: the default place (image/open.h)
 * @ret_pid: for a caller that waits for its end; may be NULL
 * Return: its socket, with a time limit on answers, or -errno. It ends when the socket is closed.
 */
int image_opener_start(const char *store, pid_t *ret_pid, struct err *e);

/*
 * image_opener_ask() - Borrow the image @ref. Waits for the answer; the opener reads some files.
 * @programs: names, ended by NULL; see image_opener_req. NULL: none.
 * Return: 0; -ENOENT when it is not in the store; or another -errno, always with a message that
 * names the remedy.
 */
int image_opener_ask(int sock, const char *ref, const char *const *programs, struct loan *ret,
		     struct err *e);

void loan_close(struct loan *l);

/* loan_string() - The string at @at of the reply's text; @at moves on. NULL: there are no more. */
const char *loan_string(const struct loan *l, size_t *at);

#endif
