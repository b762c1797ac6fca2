/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enter.c - How a process forked from a zygote becomes a sealed process of a cell.
 *
 * Theory of operation. serve.c forks the kernel into the cell's namespaces. From enter_seal() on it
 * is a process of the cell like any that init starts, with the same user, limits, descriptors,
 * Landlock domain and filter.
 *
 * This is a shared object without a C library: only system calls, so that any interpreter (glibc,
 * musl, any version) can load it. That is why it repeats steps of cell/caps.c and cell/landlock.c,
 * whose functions use the C library; it shares their tables (wire/init.h, the compiled filter), and
 * a test compares a kernel with a command of init.
 */
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "cell_filter.h"
#include "cell_writable_filter.h"
#include "wire/warden.h"
#include "wire/zygote.h"
#include "zygote/enter.h"
#include "zygote/sys.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define KEYCTL_JOIN_SESSION_KEYRING 1
#define SCOPE_ABSTRACT_UNIX_SOCKET 1u
#define LANDLOCK_ABI_WITH_SCOPES 6

/* ---- without a C library ------------------------------------------------------------------- */

/* The compiler may call these two in any program. */
void *memset(void *s, int c, size_t n);
void *memset(void *s, int c, size_t n)
{
	volatile unsigned char *p = s;

	while (n--)
		*p++ = (unsigned char)c;
	return s;
}

void *memcpy(void *restrict dst, const void *restrict src, size_t n);
void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
	volatile unsigned char *d = dst;
	const unsigned char *s = src;

	while (n--)
		*d++ = *s++;
	return dst;
}

/* ---- the hello ----------------------------------------------------------------------------- */

static long send_hello(int sock, const struct kernel_hello *h)
{
	struct iovec iov = { .iov_base = (void *)h, .iov_len = sizeof(*h) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return sys(__NR_sendmsg, sock, (long)&m, MSG_NOSIGNAL, 0, 0);
}

_Noreturn void enter_fail(int hello, uint32_t step, int code)
{
	struct kernel_hello h = { .magic = KERNEL_HELLO_MAGIC, .code = code, .step = step };

	(void)send_hello(hello, &h);
	sys_exit(71);
}

/* ---- sealing ------------------------------------------------------------------------------- */

/*
 * The cell's uptime and processors, as its init has them (cell/machine.c); not every Linux kernel
 * has both. The namespace of the first cannot be joined with the others: the child in between
 * shares its memory, and a clock belongs to a memory.
 */
static void see_machine(const struct machine_cpus *m, int pidfd)
{
	(void)sys(__NR_setns, pidfd, CLONE_NEWTIME, 0, 0, 0);
	if (m->some)
		(void)sys(__NR_sched_setaffinity, 0, sizeof(m->mask), (long)m->mask, 0, 0);
}

/* As init does for a command: nobody's groups, the agent's user, no capability in any set. */
static long shed_privilege(const struct init_config *c)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	long r;

	/* Until it is sealed, no process of the cell may trace it, also where the user stays the
	 * same: it has the zygote's descriptors and a weaker filter. */
	if ((r = sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)) < 0)
		return r;
	(void)sys(__NR_setsid, 0, 0, 0, 0, 0);
	/* All of them: setns() gave this process every capability of the cell's user namespace. */
	for (long cap = 0; (r = sys(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0)) == 0; cap++)
		;
	if (r != -EINVAL) /* the Linux kernel has no further capability */
		return r;
	/* A cell of an ordinary user has one user and no say over groups. */
	if (c->separate && (r = sys(__NR_setgroups, 0, 0, 0, 0, 0)) < 0)
		return r;
	if ((r = sys(__NR_setresgid, c->gid, c->gid, c->gid, 0, 0)) < 0 ||
	    (r = sys(__NR_setresuid, c->uid, c->uid, c->uid, 0, 0)) < 0 ||
	    (r = sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) < 0 ||
	    (r = sys(__NR_capset, (long)&header, (long)none, 0, 0, 0)) < 0 ||
	    (r = sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) < 0)
		return r;
	/* The zygote's filter refuses this, and every other use of keys as well. */
	r = sys(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
	return r < 0 && r != -ENOSYS && r != -EPERM ? r : 0;
}

static long lower(long resource, uint64_t want)
{
	struct rlimit now, set;
	long r = sys(__NR_prlimit64, 0, resource, 0, (long)&now, 0);

	if (r < 0)
		return r;
	set.rlim_cur = set.rlim_max = now.rlim_max < want ? now.rlim_max : want;
	return sys(__NR_prlimit64, 0, resource, (long)&set, 0, 0);
}

static long limit(const struct init_config *c)
{
	const struct init_limit rows[] = INIT_LIMITS(c);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		long r = lower(rows[i].resource, rows[i].value);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * 0 is /dev/null, 1 and 2 the streams, 3 and 4 the control channel, 5 the hello socket; nothing
 * else stays open. All are first copied above the numbers they go to, so that no copy overwrites
 * one still needed.
 */
static long set_descriptors(const int *fds)
{
	long null = sys(__NR_openat, AT_FDCWD, (long)"/dev/null", O_RDWR | O_CLOEXEC, 0, 0);
	const int *pipes = fds + ZYGOTE_FD_PIPES;
	const int wanted[] = { (int)null,
			       pipes[KERNEL_PIPE_STDOUT],
			       pipes[KERNEL_PIPE_STDERR],
			       pipes[KERNEL_PIPE_IN],
			       pipes[KERNEL_PIPE_OUT],
			       fds[ZYGOTE_FD_HELLO] };
	int high[ARRAY_SIZE(wanted)];
	long r;

	if (null < 0)
		return null;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if ((high[i] = (int)sys(__NR_fcntl, wanted[i], F_DUPFD_CLOEXEC, 100, 0, 0)) < 0)
			return high[i];
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if ((r = sys(__NR_dup3, high[i], (long)i, 0, 0, 0)) < 0)
			return r;
	return sys(__NR_close_range, ARRAY_SIZE(wanted), ~0u, 0, 0, 0);
}

static long landlock(void)
{
	static const struct {
		uint64_t fs, net, scoped;
	} attr = { .scoped = SCOPE_ABSTRACT_UNIX_SOCKET };
	long abi = sys(__NR_landlock_create_ruleset, 0, 0, 1, 0, 0);

	if (abi < LANDLOCK_ABI_WITH_SCOPES)
		return 0;
	long fd = sys(__NR_landlock_create_ruleset, (long)&attr, sizeof(attr), 0, 0, 0);
	long r = fd < 0 ? fd : sys(__NR_landlock_restrict_self, fd, 0, 0, 0, 0);

	if (fd >= 0)
		(void)sys(__NR_close, fd, 0, 0, 0, 0);
	return r < 0 ? r : 1;
}

static long install(const struct sock_filter *filter, unsigned short len)
{
	const struct {
		unsigned short len;
		const struct sock_filter *filter;
	} prog = { .len = len, .filter = filter };

	return sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&prog, 0, 0);
}

/*
 * A zygote runs under the cell's filter already, with setns() allowed in addition. So a filter of
 * four instructions that forbids setns() is enough, and hundreds need not be compiled for every
 * kernel. Filters add up, and the first one checks the architecture. The kernels of a zygote
 * without a filter get the whole one, and those of a cell that can write to the host the whole
 * filter of such cells.
 */
static long filter(const struct init_config *c)
{
	static const struct sock_filter no_setns[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr) },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, __NR_setns },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};

	if (c->writable)
		return install(CELL_WRITABLE_FILTER, ARRAY_SIZE(CELL_WRITABLE_FILTER));
	if (sys(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER)
		return install(no_setns, ARRAY_SIZE(no_setns));
	return install(CELL_FILTER, ARRAY_SIZE(CELL_FILTER));
}

void enter_seal(const struct zygote_req *q, const int *fds)
{
	struct kernel_hello h = { .magic = KERNEL_HELLO_MAGIC, .step = ENTER_DONE };
	const struct init_config *c = &q->config;
	const int hello = 5; /* once set_descriptors() has put it there */
	long r;

	see_machine(&q->cpus, fds[ZYGOTE_FD_INIT]);
	if ((r = shed_privilege(c)) < 0)
		enter_fail(fds[ZYGOTE_FD_HELLO], ENTER_CREDS, (int)r);
	if ((r = sys(__NR_chdir, (long)"/workspace", 0, 0, 0, 0)) < 0 ||
	    (r = set_descriptors(fds)) < 0)
		enter_fail(fds[ZYGOTE_FD_HELLO], ENTER_STDIO, (int)r);
	/* After the descriptors, of which some have numbers above a low limit for a moment. */
	if ((r = limit(c)) < 0)
		enter_fail(hello, ENTER_LIMITS, (int)r);
	if (!(c->without & CELL_WITHOUT_LANDLOCK)) {
		if ((r = landlock()) < 0)
			enter_fail(hello, ENTER_LANDLOCK, (int)r);
		h.landlock_on = (uint32_t)r;
	}
	if (!(c->without & CELL_WITHOUT_SECCOMP)) {
		if ((r = filter(c)) < 0)
			enter_fail(hello, ENTER_SECCOMP, (int)r);
		h.seccomp_on = 1;
	}
	/* The owner of /proc/self is the process's user again, as after an execve. */
	(void)sys(__NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (send_hello(hello, &h) < 0)
		enter_fail(hello, ENTER_DONE, -EPIPE);
	(void)sys(__NR_close_range, 5, ~0u, 0, 0, 0);
}
