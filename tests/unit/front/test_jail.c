/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jail.c - Calls that fail from inside the jail.
 *
 * A child enters the jail, makes every call of one table and sends the answers through a pipe. An
 * ordinary process tries before what it could do (the rows marked CONTROL), so that an answer is
 * the jail's and not the machine's. test_jail_serve.c has what still works, test_jail_user.c who
 * it runs as.
 */
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "../unit.h"
#include "jail_kit.h"

#define NEW "/tmp/caisson-test-jail"
#define ATTEMPTS_MAX 160
#define MAKE (O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC) /* JAIL_LEDGER_FLAGS */
#define MOVE 1u                                                   /* RENAME_NOREPLACE */
#define PROT_CODE (PROT_READ | PROT_EXEC)
#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

enum { CONTROL = 1 }; /* succeeds in a process without a jail, of whatever user */

struct attempt {
	const char *name;
	long nr;
	long a[6];
	int want; /* errno */
	int flags;
};

/* The objects of the attempts; made before the jail. */
static struct {
	int dir, file, spare, report[2];
	int ledger; /* where files may be made, with "full" in it */
	char path[64];
	int shut; /* was listening; Fast Open would make a client of it */
	pid_t outside;
	struct sockaddr_in listener;
	char page[4096] __attribute__((aligned(4096)));
} it;

#define P(x) ((long)(uintptr_t)(x))
#define AT(x) AT_FDCWD, P(x)

static size_t list_attempts(struct attempt *ret)
{
	static struct open_how how = { .flags = O_RDONLY };
	static char buf[512], proc_fd[32];
	static char *argv[] = { (char *)(uintptr_t) "true", NULL };
	static struct iovec iov = { buf, sizeof(buf) };
	static struct __user_cap_header_struct cap_header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	static struct __user_cap_data_struct cap_data[2] = { { 0 } };
	static struct rlimit limit = { 64, 64 };
	static int one = 1;
	const long addr = P(&it.listener), addr_len = sizeof(it.listener);

	(void)snprintf(proc_fd, sizeof(proc_fd), "/proc/self/fd/%d", it.file);
	const struct attempt list[] = {
		/* Files, by every name they have. */
		{ "openat", SYS_openat, { AT("/etc/passwd") }, EACCES, CONTROL },
		{ "openat2", SYS_openat2, { AT("/etc/passwd"), P(&how), sizeof(how) }, EACCES },
		{ "openat /", SYS_openat, { AT("/"), O_DIRECTORY }, EACCES, CONTROL },
		{ "openat O_PATH", SYS_openat, { AT("/"), O_PATH }, EACCES, CONTROL },
		{ "openat below", SYS_openat, { it.dir, P("passwd") }, EACCES, CONTROL },
		{ "openat /dev/null", SYS_openat, { AT("/dev/null"), O_RDWR }, EACCES, CONTROL },
		{ "openat /proc", SYS_openat, { AT("/proc/self/status") }, EACCES, CONTROL },
		{ "openat mem", SYS_openat, { AT("/proc/self/mem"), O_RDWR }, EACCES },
		{ "openat fd", SYS_openat, { AT(proc_fd) }, EACCES, CONTROL },
		{ "openat tmpfile", SYS_openat, { AT("/tmp"), O_TMPFILE | O_RDWR, 0600 }, EACCES },
		{ "newfstatat", SYS_newfstatat, { AT("/etc/passwd"), P(buf) }, EACCES, CONTROL },
		{ "statx",
		  SYS_statx,
		  { AT("/etc/passwd"), 0, STATX_SIZE, P(buf) },
		  EACCES,
		  CONTROL },
		{ "preadv2 that waits",
		  SYS_preadv2,
		  { it.file, P(&iov), 1, 0, 0, 0 },
		  EOPNOTSUPP,
		  CONTROL },
		{ "setitimer virtual", SYS_setitimer, { ITIMER_VIRTUAL, P(buf) }, EINVAL, CONTROL },
		{ "faccessat", SYS_faccessat, { AT("/etc/passwd"), R_OK }, EACCES, CONTROL },
		{ "readlinkat",
		  SYS_readlinkat,
		  { AT("/proc/self/exe"), P(buf), 9 },
		  EACCES,
		  CONTROL },
		{ "mkdirat", SYS_mkdirat, { AT(NEW), 0700 }, EACCES },
		{ "unlinkat", SYS_unlinkat, { AT(NEW) }, EACCES },
		{ "renameat2", SYS_renameat2, { AT(NEW), AT("/tmp/no") }, EACCES },
		{ "symlinkat", SYS_symlinkat, { P("/"), AT(NEW) }, EACCES },
		{ "linkat", SYS_linkat, { AT("/etc/passwd"), AT(NEW) }, EACCES },
		{ "mknodat", SYS_mknodat, { AT(NEW), S_IFIFO }, EACCES },
		{ "fchmodat", SYS_fchmodat, { AT(NEW), 04755 }, EACCES },
		{ "getcwd", SYS_getcwd, { P(buf), sizeof(buf) }, EACCES, CONTROL },
		{ "chdir", SYS_chdir, { P("/") }, EACCES, CONTROL },
		{ "chroot", SYS_chroot, { P("/") }, EACCES },
		{ "truncate", SYS_truncate, { P(NEW) }, EACCES },
		{ "fchmod", SYS_fchmod, { it.file, 04755 }, EPERM },
		{ "by handle", SYS_open_by_handle_at, { it.dir, P(buf) }, EPERM },
		/* Calls on files, in all but the one permitted form. */
		{ "ledger read", SYS_openat, { it.ledger, P("full") }, EACCES, CONTROL },
		{ "ledger append",
		  SYS_openat,
		  { it.ledger, P("full"), O_WRONLY | O_APPEND | O_CLOEXEC },
		  EACCES,
		  CONTROL },
		{ "ledger no excl",
		  SYS_openat,
		  { it.ledger, P("full"), MAKE & ~O_EXCL, 0600 },
		  EACCES,
		  CONTROL },
		{ "the ledger", SYS_openat, { it.ledger, P("."), O_DIRECTORY }, EACCES, CONTROL },
		{ "ledger O_PATH", SYS_openat, { it.ledger, P("full"), O_PATH }, EACCES, CONTROL },
		{ "ledger exists", SYS_openat, { it.ledger, P("full"), MAKE, 0600 }, EEXIST },
		{ "ledger up", SYS_openat, { it.ledger, P("../no"), MAKE, 0600 }, EACCES },
		{ "ledger absolute", SYS_openat, { it.ledger, P(NEW), MAKE, 0600 }, EACCES },
		{ "make elsewhere", SYS_openat, { it.dir, P("no"), MAKE, 0600 }, EACCES },
		{ "make by path", SYS_openat, { AT(NEW), MAKE, 0600 }, EACCES },
		{ "make in it by path", SYS_openat, { AT(it.path), MAKE, 0600 }, EACCES },
		{ "ledger unlink", SYS_unlinkat, { it.ledger, P("full") }, EACCES },
		{ "ledger mkdir", SYS_mkdirat, { it.ledger, P("no"), 0700 }, EACCES },
		{ "ledger link", SYS_symlinkat, { P("/"), it.ledger, P("no") }, EACCES },
		{ "rename over",
		  SYS_renameat2,
		  { it.ledger, P("full"), it.ledger, P("other"), 0 },
		  EACCES },
		{ "rename exchange",
		  SYS_renameat2,
		  { it.ledger, P("full"), it.ledger, P("other"), 2 },
		  EACCES },
		{ "rename onto",
		  SYS_renameat2,
		  { it.ledger, P("full"), it.ledger, P("other"), MOVE },
		  EEXIST },
		{ "rename out", SYS_renameat2, { it.ledger, P("full"), AT(NEW), MOVE }, EACCES },
		{ "rename in", SYS_renameat2, { AT(NEW), it.ledger, P("no"), MOVE }, EACCES },
		{ "rename up",
		  SYS_renameat2,
		  { it.ledger, P("full"), it.ledger, P("../no"), MOVE },
		  EACCES },
		{ "rename absolute",
		  SYS_renameat2,
		  { it.ledger, P("/etc/passwd"), it.ledger, P("no"), MOVE },
		  EACCES },
		{ "inotify", SYS_inotify_init1, { 0 }, ENOSYS, CONTROL },

		/* Ways to other machines and to other processes of this one. */
		{ "inet", SYS_socket, { AF_INET, SOCK_STREAM }, EACCES, CONTROL },
		{ "inet dgram", SYS_socket, { AF_INET, SOCK_DGRAM }, EACCES, CONTROL },
		{ "inet6", SYS_socket, { AF_INET6, SOCK_STREAM }, EACCES },
		{ "unix", SYS_socket, { AF_UNIX, SOCK_STREAM }, EACCES, CONTROL },
		{ "netlink", SYS_socket, { AF_NETLINK, SOCK_RAW }, EACCES, CONTROL },
		{ "packet", SYS_socket, { AF_PACKET, SOCK_RAW }, EACCES },
		{ "vsock", SYS_socket, { AF_VSOCK, SOCK_STREAM }, EACCES },
		{ "alg", SYS_socket, { AF_ALG, SOCK_SEQPACKET }, EACCES },
		{ "pair", SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0, P(buf) }, EACCES, CONTROL },
		{ "fast open",
		  SYS_sendto,
		  { it.shut, P("x"), 1, MSG_FASTOPEN | MSG_NOSIGNAL, addr, addr_len },
		  EOPNOTSUPP },
		{ "bind", SYS_bind, { it.spare, addr, addr_len }, EACCES },
		{ "connect", SYS_connect, { it.spare, addr, addr_len }, EACCES, CONTROL },
		{ "listen", SYS_listen, { it.spare, 1 }, EACCES },
		{ "SO_ATTACH_FILTER",
		  SYS_setsockopt,
		  { it.spare, SOL_SOCKET, SO_ATTACH_FILTER, P(buf), 16 },
		  ENOPROTOOPT },
		{ "TCP_ULP", SYS_setsockopt, { it.spare, 6, 31, P("tls"), 3 }, ENOPROTOOPT },
		{ "IP_TOS", SYS_setsockopt, { it.spare, 0, 1, P(&one), 4 }, ENOPROTOOPT, CONTROL },
		{ "SIOCGIFCONF", SYS_ioctl, { it.spare, 0x8912, P(buf) }, ENOTTY },
		{ "TIOCSTI", SYS_ioctl, { 0, TIOCSTI, P("x") }, ENOTTY },
		{ "TIOCSTI + 2^32", SYS_ioctl, { 0, 0x100005412, P("x") }, ENOTTY },

		/* Programs, processes, threads. */
		{ "clone", SYS_clone, { SIGCHLD }, EPERM, CONTROL },
		{ "thread", SYS_clone, { THREAD }, EPERM },
		{ "clone3", SYS_clone3, { P(buf), 64 }, ENOSYS },
		{ "execve", SYS_execve, { P("/bin/true"), P(argv), P(argv + 1) }, EPERM },
		{ "fexecve", SYS_execveat, { it.file, P(""), P(argv), 0, AT_EMPTY_PATH }, EPERM },
		{ "kill parent", SYS_kill, { getppid(), 0 }, EPERM },
		{ "kill all", SYS_kill, { -1, 0 }, EPERM },
		{ "kill itself", SYS_kill, { getpid(), 0 }, EPERM, CONTROL },
		{ "tgkill", SYS_tgkill, { it.outside, it.outside, SIGABRT }, EPERM },
		/* There is no such process, but the filter refuses first. */
		{ "tgkill none", SYS_tgkill, { 0x3fffffff, 0x3fffffff, SIGABRT }, EPERM },
		{ "tgkill itself", SYS_tgkill, { getpid(), getpid(), SIGKILL }, EPERM },
		{ "tkill", SYS_tkill, { getpid(), SIGKILL }, EPERM },
		{ "F_SETOWN", SYS_fcntl, { it.spare, F_SETOWN, it.outside }, EINVAL },
		{ "pidfd_open", SYS_pidfd_open, { getpid() }, EPERM, CONTROL },
		{ "pidfd_getfd", SYS_pidfd_getfd, { it.spare, 0 }, EPERM },
		{ "traceme", SYS_ptrace, { PTRACE_TRACEME }, EPERM },
		{ "seize", SYS_ptrace, { PTRACE_SEIZE, it.outside }, EPERM },
		{ "readv",
		  SYS_process_vm_readv,
		  { getpid(), P(&iov), 1, P(&iov), 1 },
		  EPERM,
		  CONTROL },
		{ "prlimit", SYS_prlimit64, { 0, RLIMIT_NOFILE, P(&limit) }, EPERM },

		/* Memory that is code. */
		{ "mmap",
		  SYS_mmap,
		  { 0, 4096, PROT_CODE, MAP_PRIVATE | MAP_ANONYMOUS, -1 },
		  EACCES,
		  CONTROL },
		{ "mmap file",
		  SYS_mmap,
		  { 0, 4096, PROT_CODE, MAP_PRIVATE, it.file },
		  EACCES,
		  CONTROL },
		{ "mprotect", SYS_mprotect, { P(it.page), 4096, PROT_CODE }, EACCES, CONTROL },
		{ "pkey_mprotect", SYS_pkey_mprotect, { P(it.page), 4096, PROT_CODE, -1 }, ENOSYS },
		{ "huge",
		  SYS_mmap,
		  { 0, 2 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1 },
		  ENOMEM },
		{ "huge memfd", SYS_memfd_create, { P("x"), MFD_HUGETLB }, ENOMEM },
		{ "merge", SYS_madvise, { P(it.page), 4096, MADV_MERGEABLE }, EINVAL },
		{ "shmget", SYS_shmget, { 0, 4096, 0600 }, ENOSYS },
		{ "personality", SYS_personality, { 0x0400000 }, EPERM },

		/* Identity and confinement of the process. */
		{ "setuid", SYS_setuid, { 0 }, EPERM },
		{ "setresuid", SYS_setresuid, { 0, 0, 0 }, EPERM },
		{ "setresgid", SYS_setresgid, { 0, 0, 0 }, EPERM },
		{ "setgroups", SYS_setgroups, { 0, 0 }, EPERM },
		{ "capset", SYS_capset, { P(&cap_header), P(cap_data) }, EPERM },
		{ "dumpable", SYS_prctl, { PR_SET_DUMPABLE, 1 }, EPERM },
		{ "keepcaps", SYS_prctl, { PR_SET_KEEPCAPS, 1 }, EPERM },
		{ "seccomp", SYS_seccomp, { 1, 0, P(buf) }, EPERM },
		{ "landlock", SYS_landlock_create_ruleset, { 0, 0, 1 }, ENOSYS },

		/* The machine. */
		{ "mount", SYS_mount, { P("x"), P("/tmp"), P("tmpfs"), 0, 0 }, EPERM },
		{ "umount", SYS_umount2, { P("/proc"), MNT_DETACH }, EPERM },
		{ "pivot_root", SYS_pivot_root, { P("."), P(".") }, EPERM },
		{ "unshare user", SYS_unshare, { CLONE_NEWUSER }, EPERM },
		{ "unshare files", SYS_unshare, { CLONE_FILES }, EPERM, CONTROL },
		{ "setns", SYS_setns, { it.file, 0 }, EPERM },
		{ "open_tree", SYS_open_tree, { AT("/"), 0 }, ENOSYS },
		{ "bpf", SYS_bpf, { 0, P(buf), 64 }, EPERM },
		{ "perf", SYS_perf_event_open, { P(buf), 0, -1, -1 }, EPERM },
		{ "userfaultfd", SYS_userfaultfd, { 1 }, EPERM },
		{ "io_uring", SYS_io_uring_setup, { 1, P(buf) }, ENOSYS },
		{ "keyctl", SYS_keyctl, { 0, -3, 0 }, EPERM },
		{ "add_key", SYS_add_key, { P("user"), P("x"), P("x"), 1, -2 }, EPERM },
		{ "init_module", SYS_init_module, { P(buf), 1, P("") }, EPERM },
		{ "reboot", SYS_reboot, { 0, 0, 0 }, EPERM },
		{ "settimeofday", SYS_settimeofday, { 0, 0 }, EPERM },
		{ "quotactl", SYS_quotactl, { 0 }, ENOSYS },
		{ "number 1000", 1000, { 0 }, ENOSYS },

#ifdef __x86_64__
		/* The older forms. */
		{ "open", SYS_open, { P("/etc/passwd") }, EACCES, CONTROL },
		{ "creat", SYS_creat, { P(NEW), 0600 }, EACCES },
		{ "stat", SYS_stat, { P("/etc/passwd"), P(buf) }, EACCES, CONTROL },
		{ "lstat", SYS_lstat, { P("/etc/passwd"), P(buf) }, EACCES, CONTROL },
		{ "access", SYS_access, { P("/etc/passwd"), R_OK }, EACCES, CONTROL },
		{ "readlink", SYS_readlink, { P("/proc/self/exe"), P(buf), 9 }, EACCES, CONTROL },
		{ "mkdir", SYS_mkdir, { P(NEW), 0700 }, EACCES },
		{ "unlink", SYS_unlink, { P(NEW) }, EACCES },
		{ "rename", SYS_rename, { P(NEW), P("/tmp/no") }, EACCES },
		{ "symlink", SYS_symlink, { P("/"), P(NEW) }, EACCES },
		{ "chmod", SYS_chmod, { P(NEW), 04755 }, EACCES },
		{ "fork", SYS_fork, { 0 }, EPERM, CONTROL },
		{ "x32", 0x40000000 | SYS_getpid, { 0 }, ENOSYS },
#endif
	};

	_Static_assert(ARRAY_SIZE(list) <= ATTEMPTS_MAX, "raise ATTEMPTS_MAX");
	memcpy(ret, list, sizeof(list));
	return ARRAY_SIZE(list);
}

/* The errno of each attempt, or 0. A process that one of them made ends at once. */
static void make_attempts(int only, int out)
{
	static struct attempt list[ATTEMPTS_MAX];
	static int answer[ATTEMPTS_MAX];
	size_t n = list_attempts(list);
	pid_t self = (pid_t)syscall(SYS_getpid);

	for (size_t i = 0; i < n; i++) {
		const long *a = list[i].a;

		if (only && !(list[i].flags & only))
			continue;
		errno = 0;
		answer[i] = syscall(list[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : 0;
		if (syscall(SYS_getpid) != self)
			_exit(0);
	}
	CHILD_CHECK(fd_write_all(out, answer, n * sizeof(answer[0])) == 0);
}

static int listen_at(struct sockaddr_in *ret)
{
	socklen_t len = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_in){ .sin_family = AF_INET };
	ret->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHILD_CHECK(bind(fd, (struct sockaddr *)ret, len) == 0 && listen(fd, 8) == 0);
	CHILD_CHECK(getsockname(fd, (struct sockaddr *)ret, &len) == 0);
	return fd;
}

static void prepare_ledger(void)
{
	char top[] = "/tmp/caisson-test-jail-XXXXXX";
	uid_t uid;
	gid_t gid;

	CHILD_CHECK(mkdtemp(top) && jail_identity(&uid, &gid, NULL) == 0);
	(void)snprintf(it.path, sizeof(it.path), "%s/no", top);
	it.ledger = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHILD_CHECK(it.ledger >= 0 && fchown(it.ledger, uid, gid) == 0);
	fd_close(openat(it.ledger, "full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	fd_close(openat(it.ledger, "other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* Nothing was made and nothing moved. */
static void check_ledger(void)
{
	int n = 0;
	DIR *d = fdopendir(openat(it.ledger, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	while (d && readdir(d))
		n++;
	CHILD_CHECK(closedir(d) == 0);
	CHILD_CHECK(n == 4 && unlinkat(it.ledger, "full", 0) == 0);
	CHILD_CHECK(unlinkat(it.ledger, "other", 0) == 0);
	*strrchr(it.path, '/') = '\0';
	CHILD_CHECK(rmdir(it.path) == 0);
}

static void prepare(void)
{
	it.dir = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	it.file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	it.spare = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHILD_CHECK(it.dir >= 0 && it.file >= 0 && it.spare >= 0);
	it.shut = listen_at(&it.listener);
	CHILD_CHECK(shutdown(it.shut, SHUT_RDWR) == 0);
	(void)listen_at(&it.listener);
}

/* A process of the same user outside of the jail, until the test ends. */
static void outsider(void *arg)
{
	char ch;

	fd_close(((int *)arg)[1]);
	(void)!read(((int *)arg)[0], &ch, 1);
}

static void ordinary(void *arg)
{
	(void)arg;
	make_attempts(CONTROL, it.report[1]);
}

static void jailed(void *arg)
{
	(void)arg;
	const struct jail_report r = enter_jail_with(it.ledger);

	if (!r.seccomp || !r.landlock)
		CHILD_SKIP("no filter: a build with sanitizers, or a kernel without seccomp");
	make_attempts(0, it.report[1]);
}

static void compare(void (*fn)(void *), int only)
{
	static struct attempt list[ATTEMPTS_MAX];
	int answer[ATTEMPTS_MAX], bad = 0, status = child_wait(child_start(fn, NULL));
	size_t n = list_attempts(list);

	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED) {
		check_ledger();
		_exit(CHILD_SKIPPED);
	}
	CHILD_CHECK(status == 0);
	CHILD_CHECK(read(it.report[0], answer, sizeof(answer)) == (ssize_t)(n * sizeof(int)));
	for (size_t i = 0; i < n; i++) {
		int want = only ? 0 : list[i].want;

		if (answer[i] == want)
			continue;
		(void)fprintf(stderr, "%s: %s, not %s\n", list[i].name, strerrorname_np(answer[i]),
			      strerrorname_np(want));
		bad++;
	}
	CHILD_CHECK(bad == 0);
}

static void all_attempts(void *arg)
{
	int gate[2];

	if (arg)
		child_become_nobody();
	prepare();
	prepare_ledger();
	CHILD_CHECK(pipe2(it.report, O_CLOEXEC) == 0 && pipe2(gate, O_CLOEXEC) == 0);
	it.outside = child_start(outsider, gate);
	CHILD_CHECK(it.outside > 0);
	compare(ordinary, CONTROL);
	compare(jailed, 0);
	check_ledger();
}

TEST(attempts_root)
{
	need_root("the jail of a daemon that root started");
	child_run(all_attempts, NULL);
}

TEST(attempts_user)
{
	child_run(all_attempts, "nobody");
}

#ifdef __x86_64__
static void foreign_entry(void *arg)
{
	long answer = 20; /* getpid of i386 */

	(void)arg;
	enter_filtered_jail();
	__asm__ volatile("int $0x80" : "+a"(answer) : : "memory", "r8", "r9", "r10", "r11");
	CHILD_CHECK((int)answer == -ENOSYS);
}

TEST(foreign_entry)
{
	int status = child_wait(child_start(foreign_entry, NULL));

	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		skip();
	/* A kernel without 32-bit emulation knows no such entry. */
	assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
}
#endif
