/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.c - What is left to the gate: descriptors it is given, sockets, and their bytes.
 *
 * The same layers as the front's (front/jail.c), with another user and another filter: nothing of the front is
 * within reach of one who takes the gate over, and the other way round. Landlock leaves it no file; TCP it
 * may connect, since that is what it is for.
 */
#include <errno.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/seccomp.h"
#include "gate/gate.h"
#include "gate_filter.h"

#define JAIL_USER "caisson-gate"
#define JAIL_ID 0x6ffffffbu /* beside the front's: see front/jail.c */

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
	r = caps_bound(0);
	if (r < 0)
		return err_set(e, r, "empty the capability bounding set");
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_set(e, -errno,
			       "become user %u; in a user namespace that lacks this id, make a "
			       "user '" JAIL_USER "' with one that it has",
			       uid);
	if (setresuid(0, 0, 0) == 0)
		return err_say(e, -EPERM, "still able to become root after giving it up");
	return 0;
}

static bool kernel_has_filters(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) < 0 && errno == EFAULT;
}

int gate_jail(struct err *e)
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
	r = landlock_deny_files();
	if (r < 0)
		return err_set(e, r, "enter a Landlock domain");
	if (kernel_has_filters() &&
	    seccomp_install_program(GATE_FILTER, ARRAY_SIZE(GATE_FILTER), e) < 0)
		return err_wrap(e, "enter the jail");
	return 0;
}
