/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_load.h - The policy in force: how it is read and replaced.
 *
 * At the start the file is read with the rights of the user who started the daemon, as the tokens
 * are. Later the front is in its jail and can open nothing; and a descriptor that it had kept would
 * be that of the old file, because editors write a new one and rename it. So on SIGHUP the keeper,
 * which has the rights, opens the path that it was itself started with, and hands the descriptor
 * over; the front reads and parses it in the jail. A front cannot choose the file.
 *
 * A file that is refused changes nothing: the former policy stays in force, and log, ledger,
 * metrics and /health report that. The keeper also has the text in force: a front that takes over
 * from one that was killed, and finds a broken file, uses that text.
 */
#ifndef CAISSON_FRONT_MAIN_POLICY_LOAD_H
#define CAISSON_FRONT_MAIN_POLICY_LOAD_H

#include <stdbool.h>
#include <sys/types.h>

struct buf;
struct config;
struct err;
struct parts;
struct rules;
struct rules_report;

/* policy_read_path() - A plain file of ours or root's that only its owner can write. 0 or -errno.
 */
int policy_read_path(const char *path, struct buf *ret, struct err *e);

/* policy_load() - Before the jail: --policy, if there is one. 0 or -errno, with file, line and
 * column. */
int policy_load(struct parts *p, struct err *e);
/* policy_open() - In the jail, with the ledger open: put the policy in force. 0 or -errno. */
int policy_open(struct parts *p, struct err *e);
/* policy_reload() - The keeper has opened the file: @fd, which is ours now, or @error. */
void policy_reload(struct parts *p, int fd, int error);
void policy_close(struct parts *p);

/*
 * rules_agree() - Whether a daemon with the options @c can serve under @r: its defaults are within
 * [default], its image is among the images, and every tool exists.
 */
bool rules_agree(const struct rules *r, const struct config *c, struct rules_report *report);

/* policy_verb() - `caisson policy check FILE` (policy_check.c); argv[0] is "policy". The exit code:
 * 0 good, 1 refused, 125 not readable or wrong use. */
int policy_verb(int argc, char **argv, char **env);

#endif
