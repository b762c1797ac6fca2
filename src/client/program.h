/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - Where our programs and the state directory are; starting a program with a socket;
 * messages to a service manager, in the form of sd_notify(3). */
#ifndef CAISSON_CLIENT_PROGRAM_H
#define CAISSON_CLIENT_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

struct err;
struct spawn;

/* program_find() - Beside our own executable, then in libexecdir. 0 or -ENOENT with the fix. */
int program_find(const char *name, char *path, size_t size, struct err *e);

/*
 * program_start() - Start the program of ours that s->argv[0] names, and connect to it.
 * @s: its path and one more entry of @fds are filled here
 * @at: the descriptor that the program expects its end of the SEQPACKET socket to be
 * @ret_pid: may be NULL
 * Return: our end, blocking and close-on-exec; or -errno.
 */
int program_start(struct spawn *s, int at, pid_t *ret_pid, struct err *e);

/*
 * state_dir() - @given, or /run/caisson (root), or @runtime/caisson, or /tmp/caisson-UID.
 * @given: from --state or CAISSON_STATE; NULL for the default
 * @runtime: XDG_RUNTIME_DIR, may be NULL
 * Return: 0 or -ENAMETOOLONG.
 */
int state_dir(const char *given, const char *runtime, char *path, size_t size, struct err *e);

/* notify_open() - Connect to NOTIFY_SOCKET and take it out of the environment. -1: none. */
int notify_open(void);
void notify_say(int fd, const char *text); /* does not wait; nothing with -1 */

#endif
