/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.c - What is left to caisson-bucket: descriptors it is given, connections, its manifests, and what it takes to
 * find a server: names (/etc) and who may vouch for it.
 *
 * The same layers as the gate's, with another user and another filter. Files can be read below the directories that
 * the resolver and the TLS library read, written below its own, and nowhere made that anybody executes.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "bucket/bucket.h"
#include "bucket_filter.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/seccomp.h"

#define JAIL_USER "caisson-bucket"
#define JAIL_ID 0x6ffffffau /* beside the others': see front/jail.c */

#ifdef CAISSON_SANITIZED
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static int leave_root(struct err *e)
{
	const struct passwd *pw = getpwnam(JAIL_USER);
	uid_t uid = pw ? pw->pw_uid : JAIL_ID;
	gid_t gid = pw ? pw->pw_gid : JAIL_ID;
	int r;

	if (uid == 0 || gid == 0)
		return err_say(e, -EINVAL, "the user '" JAIL_USER "' has root's ids");
	r = fchown(BUCKET_DIR_FD, uid, gid) < 0 ? -errno : caps_bound(0);
	if (r < 0)
		return err_set(e, r, "give up what is not needed");
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_set(e, -errno,
			       "become user %u; in a user namespace that lacks this id, make a "
			       "user '" JAIL_USER "' with one that it has",
			       uid);
	if (setresuid(0, 0, 0) == 0)
		return err_say(e, -EPERM, "still able to become root after giving it up");
	return 0;
}

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
	const struct rlimit no_core = { 0, 0 };
	int r = geteuid() == 0 || getuid() == 0 ? leave_root(e) : 0;

	if (r < 0)
		return r;
	r = caps_drop();
	if (r < 0)
		return err_set(e, r, "drop capabilities");
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0) < 0)
		return err_set(e, -errno, "enter the jail");
	if (SANITIZED)
		return 0;
	r = confine_files(e);
	if (r < 0)
		return r;
	return seccomp_install_program(BUCKET_FILTER, ARRAY_SIZE(BUCKET_FILTER), e);
}
