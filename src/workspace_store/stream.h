/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - Archives that come on a pipe, into a merge; until their end, or what is wrong with
 * them.
 */
#ifndef CAISSON_WORKSPACE_STREAM_H
#define CAISSON_WORKSPACE_STREAM_H

struct err;
struct merge;

/*
 * stream_cell() - The output of a file call (wire/files.h): says itself whether it is whole. 0 or
 * -errno.
 */
int stream_cell(int fd, struct merge *m, struct err *e);
/* stream_plain() - Nothing but an archive: whole when it had its end. 0 or -errno. */
int stream_plain(int fd, struct merge *m, struct err *e);

#endif
