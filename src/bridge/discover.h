/* SPDX-License-Identifier: Apache-2.0 */
/* discover.h - Where other hosts keep their lists of MCP servers. */
#ifndef CAISSON_BRIDGE_DISCOVER_H
#define CAISSON_BRIDGE_DISCOVER_H

#include <stddef.h>

struct bridge_config;
struct err;

#define BRIDGE_FILE_MAX (16u << 20)

/* bridge_read_file() - All of a configuration file into one text; the caller's to free. */
int bridge_read_file(int fd, const char *name, char **ret, size_t *ret_len, struct err *e);

/*
 * bridge_discover() - Add the servers in the usual hosts' files below @home and in the directory
 * @cwd. A file that is not there is passed over; one that makes no sense is noted. @cwd: or NULL.
 */
int bridge_discover(struct bridge_config *c, const char *home, const char *cwd, struct err *e);

#endif
