/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - A port here that is a port of a sandbox. */
#ifndef CAISSON_REMOTE_FORWARD_H
#define CAISSON_REMOTE_FORWARD_H

struct session;

/*
 * forward_run() - Listen on s->o.listen and pass every connection to @path, a port of a sandbox,
 * until a signal ends us. Prints the address when it listens. Returns only for a problem, which is
 * then in the session.
 */
void forward_run(struct session *s, const char *path);

#endif
