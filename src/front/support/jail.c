/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.c - After everything is open: give up what is not needed to serve.
 *
 * Theory of operation. The front reads strangers' bytes, so it is written as if its parsers were
 * already broken: an attacker who runs code in it should find a process that can move bytes between
 * the descriptors it has and send the requests to the warden that its permit table allows, and
 * nothing else. Three layers enforce that, none of which relies on another: a user that owns
 * nothing (as root), Landlock with rights in one directory only, and the system call filter of
 * policy/front.policy.
 *
 * The order is forced, because each step may need a right that a later one takes away: files that
 * libraries read on first use, then the rights that all services give up (cell/power.h), Landlock,
 * and the filter last. The filter is two programs, and the Linux kernel runs both: the compiled
 * policy, and a few instructions made here for values that are only known at run time: our own
 * process number, and the descriptor of the directory in which files may be made.
 *
 * All of it but the user and the limit acts only on the calling thread, so there must be no other.
 *
 * Failure model: a step that fails for another reason than a Linux kernel without the feature ends
 * the start. There is no way back, so the caller has to exit; a front never serves in half a jail.
 */
#include "front/support/jail.h"

#include <errno.h>
#include <jansson.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "cell/seccomp.h"
#include "front_filter.h"

#define JAIL_USER "caisson"
#define JAIL_ID 0x6ffffffeu /* just below the ids of cells (cell/idmap.h), in nobody's range */

/* ---- before ---------------------------------------------------------------------------------- */

/*
 * Libraries read their files now that they would read on first use. jansson matters most: it takes
 * its hash seed from /dev/urandom, and without that from the time, which a client that wants all
 * its keys in one bucket can guess.
 */
static int prime_libraries(struct err *e)
{
	size_t seed = 0;
	unsigned char byte;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return err_set(e, -errno, "getrandom");
	json_object_seed(seed | 1); /* 0 would let jansson choose */
	tzset();
	if (OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL) != 1 || RAND_bytes(&byte, 1) != 1)
		return err_say(e, -EIO, "OpenSSL does not start: check openssl.cnf");
	return 0;
}

/* After the libraries, which might have started a thread. */
static int check_one_thread(struct err *e)
{
	struct stat st;

	/* Each thread is a directory in there, and so a link; two more links are "." and "..". */
	if (stat("/proc/self/task", &st) == 0 && st.st_nlink > 3)
		return err_say(
			e, -EBUSY,
			"enter the jail: %lu threads run, and all but one would stay outside",
			(unsigned long)st.st_nlink - 2);
	return 0;
}

/* Only the files of the ledger can still be appended to, made and renamed. */
static int deny_files(int ledger_dir, struct jail_report *r, struct err *e)
{
	const struct landlock_dir keep = { ledger_dir, LANDLOCK_WRITE_FILE | LANDLOCK_REMOVE_FILE |
							       LANDLOCK_MAKE_REG |
							       LANDLOCK_TRUNCATE };
	int abi = POWER_SANITIZED ? 0 : landlock_deny_all_but(&keep, ledger_dir >= 0 ? 1 : 0);

	if (abi < 0)
		return err_set(e, abi, "enter a Landlock domain");
	r->landlock = abi > 0;
	r->landlock_abi = (unsigned int)abi;
	return 0;
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* Where each instruction of the second program stands; jumps go forward only. */
enum {
	PIN_NR,
	PIN_IS_OPENAT,
	PIN_IS_RENAME,
	PIN_IS_TGKILL,
	PIN_OPENAT,
	PIN_OPENAT_FD,
	PIN_RENAME,
	PIN_RENAME_FROM,
	PIN_RENAME_TO,
	PIN_RENAME_TO_FD,
	PIN_TGKILL,
	PIN_TGKILL_PID,
	PIN_EPERM,
	PIN_EACCES,
	PIN_ALLOW,
	PIN_MAX_
};

#define PIN_LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, at))
/* At @here: when equal to @k go to @yes, otherwise to @no. */
#define PIN_IF(here, k, yes, no)                                                                   \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), (uint8_t)((yes) - (here)-1),            \
		 (uint8_t)((no) - (here)-1))

/*
 * Rules that the compiled policy cannot express. tgkill only to ourselves: the front of an ordinary
 * user could reach the other processes of that user, and on a Linux kernel whose Landlock has no
 * scopes nothing else prevents it. Files only through the descriptor of the ledger's directory, so
 * that Landlock is not the only layer that checks it, and not without Landlock, which alone sees
 * the path.
 *
 * The low halves are compared: little endian, as everywhere that seccomp-gen supports. The
 * architecture is not checked: calls of another one fail in the other filter.
 */
static int pin_calls(int ledger_dir, bool landlock, struct err *e)
{
	/* Without a directory the comparison would be with -1, which every caller can pass. */
	const bool make = ledger_dir >= 0 && landlock;
	const struct sock_filter program[PIN_MAX_] = {
		[PIN_NR] = PIN_LOAD(nr),
		[PIN_IS_OPENAT] = PIN_IF(PIN_IS_OPENAT, SYS_openat, PIN_OPENAT, PIN_IS_RENAME),
		[PIN_IS_RENAME] = PIN_IF(PIN_IS_RENAME, SYS_renameat2, PIN_RENAME, PIN_IS_TGKILL),
		[PIN_IS_TGKILL] = PIN_IF(PIN_IS_TGKILL, SYS_tgkill, PIN_TGKILL, PIN_ALLOW),
		[PIN_OPENAT] = PIN_LOAD(args[0]),
		[PIN_OPENAT_FD] = PIN_IF(PIN_OPENAT_FD, ledger_dir, make ? PIN_ALLOW : PIN_EACCES,
					 PIN_EACCES),
		[PIN_RENAME] = PIN_LOAD(args[0]),
		[PIN_RENAME_FROM] = PIN_IF(PIN_RENAME_FROM, ledger_dir,
					   make ? PIN_RENAME_TO : PIN_EACCES, PIN_EACCES),
		[PIN_RENAME_TO] = PIN_LOAD(args[2]),
		[PIN_RENAME_TO_FD] = PIN_IF(PIN_RENAME_TO_FD, ledger_dir, PIN_ALLOW, PIN_EACCES),
		[PIN_TGKILL] = PIN_LOAD(args[0]),
		[PIN_TGKILL_PID] = PIN_IF(PIN_TGKILL_PID, getpid(), PIN_ALLOW, PIN_EPERM),
		[PIN_EPERM] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		[PIN_EACCES] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		[PIN_ALLOW] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return seccomp_install_program(program, ARRAY_SIZE(program), e);
}

static int filter_calls(int ledger_dir, struct jail_report *r, struct err *e)
{
	if (POWER_SANITIZED || !power_has_filters())
		return 0;
	if (pin_calls(ledger_dir, r->landlock, e) < 0 ||
	    seccomp_install_program(FRONT_FILTER, ARRAY_SIZE(FRONT_FILTER), e) < 0)
		return err_wrap(e, "enter the jail");
	r->seccomp = true;
	return 0;
}

int jail_identity(uid_t *ret_uid, gid_t *ret_gid, struct err *e)
{
	struct power_user user;
	int r = power_user(JAIL_USER, JAIL_ID, &user, e);

	*ret_uid = user.uid ? user.uid : geteuid();
	*ret_gid = user.uid ? user.gid : getegid();
	return r;
}

int jail_enter(int ledger_dir, struct jail_report *ret, struct err *e)
{
	struct err local = { 0 };
	struct power_user user;

	if (!e)
		e = &local;
	if (prime_libraries(e) < 0 || power_user(JAIL_USER, JAIL_ID, &user, e) < 0 ||
	    check_one_thread(e) < 0 || power_leave(&user, e) < 0 || power_settle(e) < 0)
		return e->code;
	struct jail_report r = {
		.user = user.uid != 0, .uid = geteuid(), .caps = true, .no_new_privs = true
	};

	if (deny_files(ledger_dir, &r, e) < 0 || filter_calls(ledger_dir, &r, e) < 0)
		return e->code;
	*ret = r;
	return 0;
}
