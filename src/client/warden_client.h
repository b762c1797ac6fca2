/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_client.h - The client of the warden socket: plain functions for an unprivileged caller.
 *
 * The counterpart of src/warden/dispatch.c: each function is one request, and waits for its one
 * reply.
 */
#ifndef CAISSON_CLIENT_WARDEN_CLIENT_H
#define CAISSON_CLIENT_WARDEN_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/warden.h"

struct err;

struct warden_cell {
	uint32_t handle;
	int channel;        /* to its init; the caller's */
	uint32_t host_base; /* host id of the cell's id 0; 0 without a range */
};

struct warden_client {
	int fd;
	pid_t pid;
	uint64_t seq;
};

/*
 * warden_start() - Start a warden of our own. @state: the journal's directory.
 * It is looked for beside our own executable, then in libexecdir.
 */
int warden_start(const char *state, struct warden_client *ret, struct err *e);

/* warden_stop() - Hang up (the warden destroys what is left) and wait for it to end. Idempotent. */
void warden_stop(struct warden_client *w);

/* warden_create() - @fds: image directory if any, then mounts; borrowed. */
int warden_create(struct warden_client *w, const struct cell_spec *spec, const int *fds,
		  size_t n_fds, struct warden_cell *ret, struct err *e);

/* warden_evidence() - Memfd in the format of wire/evidence.h, or -errno. */
int warden_evidence(struct warden_client *w, uint32_t cell, struct err *e);

/* warden_destroy() - When this returns 0, nothing of the cell is left. @ret is filled in any case
 * in which the warden answered. */
int warden_destroy(struct warden_client *w, uint32_t cell, struct cell_usage *ret, struct err *e);

#endif
