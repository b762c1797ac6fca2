/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users.h - Entries for the users of a cell in the image's /etc/passwd and /etc/group.
 */
#ifndef CAISSON_INIT_USERS_H
#define CAISSON_INIT_USERS_H

#include <stdbool.h>
#include <stddef.h>

struct init_config;

/*
 * users_begin() - Once, after sealing and before any command, while SIGCHLD is blocked: add the
 * agent and root where the image lacks them. An image that cannot be completed stays as it is; that
 * is no error.
 */
void users_begin(const struct init_config *c);

/* users_has() - Whether a line "name:password:ID..." of @text has the number @id. */
bool users_has(const char *text, size_t len, unsigned int id);

#endif
