/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.c - What is left to caisson-bucket: descriptors it is given, connections, its manifests, and
 * what it takes to find a server: names (/etc) and who may vouch for it.
 *
 * The same layers as the gate's, with another user and another filter. Files can be read below the
 * directories that the resolver and the TLS library read, written below its own, and nowhere made
 * that anybody executes.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "bucket/bucket.h"
#include "bucket_filter.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "cell/seccomp.h"

#define JAIL_USER "caisson-bucket"
#define JAIL_ID 0x6ffffffau /* beside the others': see front/support/jail.c */

static int confine_files(struct err *e)
{
	/* Where names and certificates are; resolv.conf is often a link into /run. */
	static const char *const read_only[] = { "/etc", "/usr/share/ca-certificates",
						 "/run/systemd/resolve", "/run/resolvconf" };
	struct landlock_dir dirs[1 + ARRAY_SIZE(read_only)] = {
		{ BUCKET_DIR_FD, LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_DIR |
					 LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_REG |
					 LANDLOCK_TRUNCATE },
	};
	size_t n = 1;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(read_only); i++) {
		int fd = open(read_only[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			dirs[n++] =
				(struct landlock_dir){ fd, LANDLOCK_READ_FILE | LANDLOCK_READ_DIR };
	}
	r = landlock_deny_files_but(dirs, n);
	while (n > 1)
		fd_close(dirs[--n].fd);
	return r < 0 ? err_set(e, r, "enter a Landlock domain") : 0;
}

int bucket_jail(struct err *e)
{
	struct power_user user;

	if (power_user(JAIL_USER, JAIL_ID, &user, e) < 0)
		return e->code;
	if (user.uid && fchown(BUCKET_DIR_FD, user.uid, user.gid) < 0)
		return err_set(e, -errno, "hand over the directory of manifests");
	if (power_leave(&user, e) < 0 || power_settle(e) < 0)
		return e->code;
	if (POWER_SANITIZED)
		return 0;
	if (confine_files(e) < 0)
		return e->code;
	return seccomp_install_program(BUCKET_FILTER, ARRAY_SIZE(BUCKET_FILTER), e);
}
