/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_zygote.c - The child's steps from clone to a zygote's interpreter.
 *
 * A zygote is not in a cell, because it has to be able to enter many. So it is confined by other
 * means: a user of its own without any capability, a root file system like a cell's (a read-only
 * view of /usr), its own mount, network, ipc, uts and cgroup namespaces, its own cgroup with limits
 * (which it and its children can leave only for those of its cells), /proc that shows it only
 * itself, and no new privileges ever. It never reads a client's bytes; the confinement bounds the
 * harm of a preloaded module.
 *
 * Without root there is neither a second user nor a private root: the zygote is then an ordinary
 * process of the caller.
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/caps.h"
#include "cell/plan.h"
#include "cell/seccomp.h"
#include "cell/spec.h"
#include "cell/stage.h"
#include "wire/zygote.h"
#include "zygote_filter.h"

/* Where images keep their interpreter, in the order of a cell's PATH. */
static const char *const pythons[] = { "/usr/local/bin/python3", "/usr/bin/python3",
				       "/bin/python3" };

static void private_root(const struct plan *p)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		stage_fail(p, STAGE_PRIVATE, 0);
	if (unshare(CLONE_NEWCGROUP) < 0)
		stage_fail(p, STAGE_CGROUPNS, 0);
	root_build(p, root_proc(p));
	if (sethostname(CELL_HOSTNAME, sizeof(CELL_HOSTNAME) - 1) < 0)
		stage_fail(p, STAGE_HOSTNAME, 0);
}

static void become_user(const struct plan *p)
{
	uid_t id = p->owner;

	stage_check(p, caps_bound(0), STAGE_CAPS, 0);
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		stage_fail(p, STAGE_USER, 0);
}

/* The two sockets as 3 and 4, /dev/null below, nothing above. */
static void set_descriptors(const struct plan *p)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int warden = fcntl(p->channel_fd, F_DUPFD_CLOEXEC, 100);
	int status = fcntl(p->status_fd, F_DUPFD_CLOEXEC, 100);
	/* The report must survive what follows. */
	int sync = fcntl(p->sync_fd, F_DUPFD_CLOEXEC, 100);

	if (null < 0 || warden < 0 || status < 0 || sync < 0)
		stage_fail(p, STAGE_STDIO, 0);
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			stage_fail(p, STAGE_STDIO, 1);
	if (p->sync_fd == ZYGOTE_WARDEN_FD || p->sync_fd == ZYGOTE_STATUS_FD)
		((struct plan *)p)->sync_fd = sync;
	if (dup2(warden, ZYGOTE_WARDEN_FD) < 0 || dup2(status, ZYGOTE_STATUS_FD) < 0 ||
	    syscall(SYS_close_range, 5u, ~0u, 1u << 2 /* CLOSE_RANGE_CLOEXEC */) < 0)
		stage_fail(p, STAGE_STDIO, 2);
}

static void give_up(const struct plan *p)
{
	struct rlimit core = { 0, 0 };

	if (p->owner)
		stage_check(p, caps_keep(0, 0), STAGE_CAPS, 1);
	if (setrlimit(RLIMIT_CORE, &core) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		stage_fail(p, STAGE_CAPS, 2);
	stage_leave_keyring(p);
	if (p->spec->without & CELL_WITHOUT_SECCOMP)
		return;
	/* The filter of a kernel, and setns(), which each kernel then forbids itself. */
	stage_check(p, seccomp_install_program(ZYGOTE_FILTER, ARRAY_SIZE(ZYGOTE_FILTER), NULL),
		    STAGE_CAPS, 3);
}

void stage_zygote_run(const struct plan *p)
{
	static char python[] = "python3", isolated[] = "-I", mode[] = "zygote";
	char *const argv[] = {
		python, isolated, (char *)p->guest_script, mode, (char *)p->guest_path, NULL
	};
	/* The environment of its kernels, the same that init gives to commands; a kernel removes
	 * the settings of libraries. They have one thread: threads do not survive a fork. */
	static char path[] = "PATH=" CELL_TOOLS_PATH(CELL_PATH), home[] = "HOME=" CELL_HOME,
		    user[] = "USER=" CELL_USER, logname[] = "LOGNAME=" CELL_USER,
		    lang[] = "LANG=C.UTF-8", shell[] = "SHELL=/bin/bash",
		    blas[] = "OPENBLAS_NUM_THREADS=1", omp[] = "OMP_NUM_THREADS=1",
		    bytecode[] = "PYTHONDONTWRITEBYTECODE=1",
		    mpl[] = "MPLCONFIGDIR=/tmp/matplotlib";
	static const char tools[] = "PYTHONPATH=" CELL_TOOLS_PYTHONPATH;
	static const char *const envp[] = { path, home, user,     logname, lang,  shell,
					    blas, omp,  bytecode, mpl,     tools, CELL_PROGRAMS_ENV,
					    NULL };

	stage_die_with_parent(p);
	/* Signals that the warden ignores would be ignored by kernels, too. */
	process_reset_signals();
	/* Its kernels inherit it, and cannot set it: their /proc is read-only. In their cells they
	 * go before pid 1, as commands do. */
	(void)fd_write_file(AT_FDCWD, "/proc/self/oom_score_adj", INIT_SCORE_COMMAND);
	stage_check(p, cgroup_enter_self(&p->enter), STAGE_CGROUP, 0);
	if (p->owner) {
		private_root(p);
		become_user(p);
		stage_die_with_parent(p);
	}
	(void)setsid();
	set_descriptors(p);
	give_up(p);
	for (size_t i = 0; i < ARRAY_SIZE(pythons); i++)
		(void)execve(pythons[i], argv, (char *const *)envp);
	stage_fail(p, STAGE_EXEC, 1);
}
