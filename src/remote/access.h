/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - Where the daemon is on this machine, and the token that it is shown. */
#ifndef CAISSON_REMOTE_ACCESS_H
#define CAISSON_REMOTE_ACCESS_H

#include <stddef.h>

struct err;
struct remote_options;

/* access_socket() - --socket, or caisson.sock in the state directory. 0 or -EINVAL, -ENAMETOOLONG.
 */
int access_socket(const struct remote_options *o, char *path, size_t size, struct err *e);

/*
 * access_token() - From --token-file, else from CAISSON_TOKEN. A file may have the form of the
 * daemon's own (NAME:TOKEN); its first line counts. Others may not be able to read it.
 * @ret: NULL when there is none; end it with access_wipe().
 */
int access_token(const struct remote_options *o, char **ret, struct err *e);
void access_wipe(char *token); /* NULL is fine */

#endif
