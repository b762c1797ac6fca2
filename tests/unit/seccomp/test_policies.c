/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_policies.c - cell.policy and front.policy: whether they have the required rules, and whether
 * the filters made from them agree.
 *
 * usage: test_policies [DIR], their directory; by default policy/ below the working directory.
 */
#include "base/err.h"
#include "base/fd.h"
#include "seccomp/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

#define CELL "cell.policy"
#define FRONT "front.policy"

/* A sanitizer makes each verification slow: there every eighth instruction has to do. */
#ifdef CAISSON_SANITIZED
#define CHANGE_STEP 8
#else
#define CHANGE_STEP 1
#endif

static const char *policy_dir = "policy";
static struct policy pol;
static struct filter flt;
static struct filter_call calls[POLICY_RULES_MAX];
static struct err err;

static void load_policy(const char *name)
{
	static char path[4096], text[POLICY_TEXT_MAX + 1];

	(void)snprintf(path, sizeof(path), "%s/%s", policy_dir, name);
	ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof(text));

	if (len < 0)
		fail_msg("cannot read %s: run from the source root or name the directory", path);
	if (policy_parse(text, (size_t)len, &pol, &err) < 0)
		fail_msg("%s: %s", path, err.msg);
}

static int decide(const char *name, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	const uint64_t args[6] = { a0, a1, a2, a3, 0, 0 };

	return policy_decide(&pol, policy_find(&pol, name), args);
}

/* A policy against libseccomp's table for x86-64; returns the number of calls. */
static size_t resolve_policy(const char *file)
{
	size_t n = 0;

	load_policy(file);
	for (uint32_t nr = 0; nr < 1024; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, (int)nr);
		const struct policy_rule *rule = name ? policy_find(&pol, name) : NULL;

		for (size_t i = 0; !name && i < pol.n_numbers; i++)
			if (pol.numbers[i].nr == nr)
				rule = policy_find(&pol, pol.numbers[i].name);
		free(name);
		if (rule)
			calls[n++] = (struct filter_call){ nr, rule };
	}
	return n;
}

/* Every name that a policy lists is a call. */
static void check_names(size_t n)
{
	for (size_t i = 0; i < pol.n_rules; i++) {
		bool found = false;

		for (size_t j = 0; j < n; j++)
			found |= calls[j].rule == &pol.rules[i];
		if (!found)
			fail_msg("'%s' (line %u) is no x86-64 call: a misspelling decides nothing",
				 pol.rules[i].name, pol.rules[i].line);
	}
	assert_int_equal(n, pol.n_rules);
}

/* A cell's policy decides every call of the machine; the front's leaves most to the default. */
TEST(cell_policy_is_complete)
{
	size_t n = resolve_policy(CELL);

	check_names(n);
	assert_true(n >= 380);
	for (int nr = 0; nr < 1024; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, nr);

		if (name && !policy_find(&pol, name))
			fail_msg("number %d, '%s', is not decided", nr, name);
		free(name);
	}
}

TEST(front_policy_names)
{
	check_names(resolve_policy(FRONT));
}

TEST(cell_policy_numbers_are_right)
{
	load_policy(CELL);
	for (size_t i = 0; i < pol.n_numbers; i++) {
		const struct policy_number *own = &pol.numbers[i];
		int nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, own->name);

		if (nr >= 0)
			assert_int_equal(nr, own->nr);
		if (own->nr < 424)
			assert_string_equal(own->arch, "x86_64");
	}
}

/* Calls with the same checks may stand in for each other: no argument tells them apart. */
static bool same_checks(const struct policy_rule *a, const struct policy_rule *b)
{
	size_t i = 0, j = 0;

	if (!a || !b || a->action != POLICY_CHECK || b->action != POLICY_CHECK)
		return false;
	for (;; i++, j++) {
		while (i < pol.n_checks && &pol.rules[pol.checks[i].rule] != a)
			i++;
		while (j < pol.n_checks && &pol.rules[pol.checks[j].rule] != b)
			j++;
		if (i == pol.n_checks || j == pol.n_checks)
			return i == j;

		struct policy_check x = pol.checks[i], y = pol.checks[j];

		if (x.arg != y.arg || x.mask != y.mask || x.negate != y.negate || x.err != y.err ||
		    x.count != y.count ||
		    memcmp(&pol.values[x.first], &pol.values[y.first],
			   x.count * sizeof(pol.values[0])) != 0)
			return false;
	}
}

static const struct policy_rule *rule_of(size_t n, uint32_t nr)
{
	for (size_t i = 0; i < n; i++)
		if (calls[i].nr == nr)
			return calls[i].rule;
	return NULL;
}

static void check_filter(size_t n)
{
	size_t wrong = 0;

	pol.foreign_err = EACCES; /* otherwise the same as the default: then no one can tell them
				     apart */
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, n, &flt, &err), 0);
	assert_int_equal(filter_verify(&pol, AUDIT_ARCH_X86_64, calls, n, flt.prog, flt.len, &err),
			 0);

	/* The verification sees any single change: of each return, and of each compared value. */
	for (size_t i = 0; i < flt.len; i += CHANGE_STEP) {
		struct sock_filter saved = flt.prog[i];

		if (saved.code == (BPF_LD | BPF_W | BPF_ABS) || saved.code == (BPF_JMP | BPF_JA))
			continue;
		flt.prog[i].k ^= 1;
		if (filter_verify(&pol, AUDIT_ARCH_X86_64, calls, n, flt.prog, flt.len, &err) ==
			    0 &&
		    !(saved.code == (BPF_JMP | BPF_JGE | BPF_K) &&
		      same_checks(rule_of(n, saved.k - 1), rule_of(n, saved.k)))) {
			print_error("a change of instruction %zu goes unseen (code %#x, %#x)\n", i,
				    saved.code, saved.k);
			wrong++;
		}
		flt.prog[i] = saved;
	}
	assert_int_equal(wrong, 0);
}

TEST(cell_filter_means_the_policy)
{
	size_t n = resolve_policy(CELL);

	policy_drop_writable(&pol);
	check_filter(n);
}

TEST(filter_of_writable_cells_means_the_policy)
{
	check_filter(resolve_policy(CELL));
}

TEST(front_filter_means_the_policy)
{
	check_filter(resolve_policy(FRONT));
}

TEST(cell_policy_decisions)
{
	static const char *const init_needs[] = {
		"recvmsg",   "sendmsg",   "fork",
		"setresuid", "setresgid", "setgroups",
		"capset",    "execve",    "execveat",
		"wait4",     "waitid",    "kill",
		"statfs",    "openat",    "pidfd_send_signal",
		"dup3",      "prlimit64", "close_range",
		"poll",      "ppoll",     "landlock_restrict_self",
	};

	load_policy(CELL);
	for (size_t i = 0; i < ARRAY_SIZE(init_needs); i++)
		if (decide(init_needs[i], 0, 0, 0, 0) != 0)
			fail_msg("init needs '%s'", init_needs[i]);
	assert_int_equal(decide("clone", 0x3d0f00, 0, 0, 0), 0); /* what pthread_create uses */
	assert_int_equal(decide("clone", 0x01200011, 0, 0, 0), 0);
	for (unsigned bit = 0; bit < 32; bit++)
		if (0x7e020080 & 1u << bit)
			assert_int_equal(decide("clone", 1u << bit | 17, 0, 0, 0), EPERM);
	assert_int_equal(decide("clone3", 0, 0, 0, 0), ENOSYS);
	assert_int_equal(decide("socket", 16, 3, 0, 0), EAFNOSUPPORT);
	assert_int_equal(decide("socket", 2, 0x80003, 0, 0), EPERM);
	assert_int_equal(decide("socket", 10, 0x80801, 6, 0), 0);
	assert_int_equal(decide("socket", 2, 2, 1, 0), EPROTONOSUPPORT);
	assert_int_equal(decide("ioctl", 0, 0x100005412, 0, 0), EPERM);
	assert_int_equal(decide("ioctl", 0, 0x540e, 0, 0), 0); /* TIOCSCTTY */
	assert_int_equal(decide("ioctl", 0, 0x5414, 0, 0), 0); /* TIOCSWINSZ */
	assert_int_equal(decide("personality", 0x0040000, 0, 0, 0), 0);
	assert_int_equal(decide("personality", 0x0400000, 0, 0, 0), EPERM);
	assert_int_equal(decide("personality", 0xffffffff, 0, 0, 0), 0);
	assert_int_equal(decide("prctl", 38, 1, 0, 0), 0);
	assert_int_equal(decide("prctl", 35, 0, 0, 0), EINVAL);
	assert_int_equal(decide("chmod", 0, 0755, 0, 0), 0);
	assert_int_equal(decide("chmod", 0, 04755, 0, 0), EPERM);
	assert_int_equal(decide("openat", 0, 0, 0, 02755), EPERM);
	assert_int_equal(decide("openat2", 0, 0, 0, 0), ENOSYS);
	assert_int_equal(decide("prlimit64", 1, 0, 0, 0), EPERM);
	assert_int_equal(decide("seccomp", 1, 0, 0, 0), 0);
	assert_int_equal(decide("seccomp", 1, 8, 0, 0), EINVAL);
	assert_int_equal(decide("ptrace", 0, 0, 0, 0), 0);          /* TRACEME */
	assert_int_equal(decide("ptrace", 16, 2, 0, 0), EPERM);     /* ATTACH */
	assert_int_equal(decide("ptrace", 0x4206, 2, 0, 0), EPERM); /* SEIZE */
	assert_int_equal(decide("process_vm_writev", 0x100000001, 0, 0, 0), EPERM);
}

/* The set-group-id bit is refused where it could reach the host, the set-user-id bit everywhere. */
TEST(cell_policy_set_id_bits)
{
	static const struct {
		const char *call;
		unsigned arg;
	} rows[] = {
		{ "chmod", 1 },     { "fchmod", 1 }, { "fchmodat", 2 },
		{ "fchmodat2", 2 }, { "creat", 1 },  { "open", 2 },
		{ "openat", 3 },    { "mknod", 1 },  { "mknodat", 2 },
	};

	for (int writable = 1; writable >= 0; writable--) {
		load_policy(CELL);
		if (!writable)
			policy_drop_writable(&pol);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			uint64_t a[4] = { 0 };

			a[rows[i].arg] = 02755;
			assert_int_equal(decide(rows[i].call, a[0], a[1], a[2], a[3]),
					 writable ? EPERM : 0);
			a[rows[i].arg] = 04755;
			assert_int_equal(decide(rows[i].call, a[0], a[1], a[2], a[3]), EPERM);
		}
	}
}

/* No way to a file that exists, a socket, a program or another process is open, whatever the
 * arguments. */
TEST(front_policy_decisions)
{
	static const char *const never[] = {
		"open",
		"openat2",
		"creat",
		"socket",
		"socketpair",
		"connect",
		"bind",
		"listen",
		"fork",
		"vfork",
		"clone",
		"clone3",
		"execve",
		"execveat",
		"kill",
		"tkill",
		"ptrace",
		"process_vm_writev",
		"pidfd_send_signal",
		"setuid",
		"setresuid",
		"capset",
		"mount",
		"unshare",
		"setns",
		"prctl",
		"seccomp",
		"personality",
		"io_uring_setup",
		"io_uring_enter",
		"open_by_handle_at",
		"shmat",
		"pkey_mprotect",
		"sendmmsg",
		"dup2",
	};

	load_policy(FRONT);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		const struct policy_rule *rule = policy_find(&pol, never[i]);

		if (rule && rule->action != POLICY_DENY)
			fail_msg("'%s' must not be open to the front", never[i]);
	}
	assert_int_equal(decide("mmap", 0, 4096, 3, 0x22), 0);
	for (uint64_t prot = 4; prot < 8; prot++) {
		assert_int_equal(decide("mmap", 0, 4096, prot, 0x22), EACCES);
		assert_int_equal(decide("mprotect", 0, 4096, prot, 0), EACCES);
	}
	assert_int_equal(decide("sendto", 0, 0, 0, 0x4000), 0); /* MSG_NOSIGNAL */
	assert_int_equal(decide("sendto", 0, 0, 0, 0x20004000), EOPNOTSUPP);
	assert_int_equal(decide("sendmsg", 0, 0, 0x20000000, 0), EOPNOTSUPP);
	assert_int_equal(decide("newfstatat", 3, 0, 0, 0x1000), 0);
	assert_int_equal(decide("newfstatat", 3, 0, 0, 0x1100), EACCES);
	/* Nothing that exists: a file is made or not opened at all. */
	assert_int_equal(decide("openat", 5, 0, 0x804c1, 0600), 0);
	for (unsigned bit = 0; bit < 32; bit++)
		assert_int_equal(decide("openat", 5, 0, 0x804c1 ^ 1u << bit, 0600), EACCES);
	assert_int_equal(decide("openat", 5, 0, 0, 0), EACCES);
	assert_int_equal(decide("fcntl", 3, 1033, 0, 0), 0);   /* F_ADD_SEALS */
	assert_int_equal(decide("fcntl", 3, 8, 0, 0), EINVAL); /* F_SETOWN */
	assert_int_equal(decide("ioctl", 3, 0x541b, 0, 0), 0);
	assert_int_equal(decide("ioctl", 3, 0x5412, 0, 0), ENOTTY);
	assert_int_equal(decide("setsockopt", 3, 6, 1, 0), 0);
	assert_int_equal(decide("setsockopt", 3, 6, 30, 0), ENOPROTOOPT); /* FASTOPEN_CONNECT */
	assert_int_equal(decide("setsockopt", 3, 1, 26, 0), ENOPROTOOPT); /* SO_ATTACH_FILTER */
	assert_int_equal(decide("setsockopt", 3, 41, 1, 0), ENOPROTOOPT);
	assert_int_equal(decide("futex", 0, 0x189, 0, 0), 0);
	assert_int_equal(decide("futex", 0, 0x86, 0, 0), ENOSYS); /* FUTEX_LOCK_PI */
	assert_int_equal(decide("tgkill", 1, 1, 6, 0), 0);
	assert_int_equal(decide("tgkill", 1, 1, 9, 0), EPERM);
	assert_int_equal(decide("inotify_init1", 0, 0, 0, 0), ENOSYS);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		policy_dir = argv[1];
	return unit_run();
}
