/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_load.h - The policy in force: where it comes from, and how another takes its place.
 *
 * At the start the file is read with the rights of whoever started the daemon, as the tokens are.
 * Later the front is in its jail and can open nothing; and a descriptor that it had kept would be
 * that of the old file, because editors write a new one and rename it. So on SIGHUP the keeper,
 * which has the rights, opens the path that it was itself started with, and hands the descriptor
 * over; it is read and parsed in the jail. A front can not say which file.
 *
 * A file that is refused changes nothing: the policy before it stays, and log, ledger, metrics and
 * /health say so. The text in force lies with the keeper too: a front that takes over from one that
 * was killed, and finds a broken file, goes on with that.
 */
#ifndef CAISSON_FRONT_MAIN_POLICY_LOAD_H
#define CAISSON_FRONT_MAIN_POLICY_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;
struct front;

/* policy_read() - Of a descriptor: a plain file of @uid or root that nobody else can write. 0 or
 * -errno. */
int policy_read(int fd, uid_t uid, struct buf *ret, struct err *e);
/* policy_read_path() - The same by its name. */
int policy_read_path(const char *path, struct buf *ret, struct err *e);

/* policy_load() - Before the jail: --policy, if there is one. 0 or -errno, with file, line and
 * column. */
int policy_load(struct front *f, struct err *e);
/* policy_open() - In the jail, when there is a ledger: what holds from now on. 0 or -errno. */
int policy_open(struct front *f, struct err *e);
/* policy_reload() - The keeper has opened the file: @fd, which is ours now, or @error. */
void policy_reload(struct front *f, int fd, int error);
void policy_close(struct front *f);

#endif
