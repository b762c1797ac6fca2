/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weaken.c - Take back what was given up: capabilities, no-new-privileges, the filter.
 *
 * After "ready" the judge reads our status from outside, then sends a line.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static void caps(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[2] = { { ~0u, ~0u, ~0u }, { 0x1ffu, 0x1ffu, 0x1ffu } },
				      one[2] = { { 0 } };

	one[0].effective = one[0].permitted = one[0].inheritable = 1u << CAP_SYS_ADMIN;
	say("securebits", prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0));
	say("keepcaps", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	say("setuid-0", setresuid(0, 0, 0));
	say("setgroups", syscall(SYS_setgroups, 1ul, &(unsigned int){ 0 }));
	say("capset-all", syscall(SYS_capset, &h, all));
	say("capset-admin", syscall(SYS_capset, &h, one));
	say("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
	say("bounding-drop", prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0));
}

/* A filter of our own that allows everything must not undo the first one. */
static void filters(void)
{
	static struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog prog = { 1, allow };

	say("nnp-off", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	say("seccomp-mode-0", prctl(PR_SET_SECCOMP, 0, 0, 0, 0));
	say("seccomp-listener",
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog));
	say("seccomp-allow-all", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog));
	say("prctl-allow-all", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0));
	say("unshare-after", unshare(CLONE_NEWUSER));
}

static void limits(void)
{
	for (int r = 0; r < RLIM_NLIMITS; r++) {
		struct rlimit now, more;
		char name[32];

		if (getrlimit((__rlimit_resource_t)r, &now) < 0 || now.rlim_max == RLIM_INFINITY)
			continue;
		more = (struct rlimit){ now.rlim_max + 1, now.rlim_max + 1 };
		(void)snprintf(name, sizeof(name), "rlimit-%d", r);
		say(name, setrlimit((__rlimit_resource_t)r, &more));
	}
}

static void others(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE };
	int fd = (int)say("landlock-create",
			  syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0));

	say("set-mm-exe",
	    prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, open("/usr/bin/env", O_RDONLY), 0, 0));
	say("memfd_secret", syscall(447, 0u));
	say("lsm_set_self_attr", syscall(460, 0u, NULL, 0ul, 0u));
	say("landlock-restrict", syscall(SYS_landlock_restrict_self, fd, 0));
	/* One's own rules bind one: a file cannot be written any more. */
	say("write-after-landlock", open("/tmp/landlocked", O_WRONLY | O_CREAT, 0600));
}

int main(void)
{
	char line[16];

	caps();
	filters();
	limits();
	others();
	(void)printf("ready\n");
	(void)fflush(stdout);
	return fgets(line, sizeof(line), stdin) ? 0 : 1;
}
