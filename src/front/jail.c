/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.c - After everything is open: give up what is not needed to serve.
 *
 * Theory of operation. The front reads strangers' bytes, so it is written as if its parsers were
 * already broken: whoever runs code in it should find a process that can move bytes between the
 * descriptors it has and ask the warden what its permit table allows, and nothing else. Three
 * layers say so, none of which relies on another: a user that owns nothing (as root), Landlock
 * without a single rule, and the system call filter of policy/front.policy.
 *
 * The order is forced, because each step may need what a later one takes away: files that libraries
 * read on first use, then the bounding set (needs CAP_SETPCAP), the user (needs CAP_SETUID), the
 * other capability sets, no-new-privileges (which the next two require), Landlock, and the filter
 * last. The filter comes as two programs that the kernel both asks: the compiled policy, and six
 * instructions made here for the one thing that is only known at run time, our own process number.
 *
 * All of it but the user and the limit acts on the calling thread alone, so there must be no other.
 *
 * Failure model: a step that fails for another reason than a kernel without the feature ends the
 * start. There is no way back out, so the caller has to exit; half a jail never serves.
 */
#include "front/jail.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <pwd.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/seccomp.h"
#include "front_filter.h"

#define JAIL_USER "caisson"
#define JAIL_ID 0x6ffffffeu /* just below the ids of cells (cell/idmap.h), in nobody's range */

#ifdef CAISSON_SANITIZED
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Whom to become; uid 0 for an ordinary user, who stays who he is. */
struct identity {
	uid_t uid;
	gid_t gid;
};

/* ---- before ---------------------------------------------------------------------------------- */

/*
 * What libraries read from files the first time they need it, they read now. jansson matters most:
 * its hash seed would come from /dev/urandom and otherwise silently be the time, which a client
 * that wants all its keys in one bucket can guess.
 */
static int prime_libraries(struct err *e)
{
	size_t seed = 0;
	unsigned char byte;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return err_set(e, -errno, "getrandom");
	json_object_seed(seed | 1); /* 0 would mean: choose one yourself */
	tzset();
	if (OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL) != 1 || RAND_bytes(&byte, 1) != 1)
		return err_say(e, -EIO, "OpenSSL does not start: check openssl.cnf");
	return 0;
}

static int find_identity(struct identity *ret, struct err *e)
{
	const struct passwd *pw;

	*ret = (struct identity){ 0 };
	if (geteuid() != 0 && getuid() != 0)
		return 0;
	pw = getpwnam(JAIL_USER);
	if (!pw) {
		*ret = (struct identity){ JAIL_ID, JAIL_ID };
		return 0;
	}
	if (pw->pw_uid == 0 || pw->pw_gid == 0)
		return err_say(e, -EINVAL,
			       "the user '" JAIL_USER "' has uid %u and gid %u; give it ids that "
			       "are not root's, or remove it",
			       pw->pw_uid, pw->pw_gid);
	*ret = (struct identity){ pw->pw_uid, pw->pw_gid };
	return 0;
}

/* After the libraries, which might have started one. */
static int check_one_thread(struct err *e)
{
	struct stat st;

	/* Each thread is a directory in there, and so a link: two are its own and its parent's. */
	if (stat("/proc/self/task", &st) == 0 && st.st_nlink > 3)
		return err_say(
			e, -EBUSY,
			"enter the jail: %lu threads run, and all but one would stay outside",
			(unsigned long)st.st_nlink - 2);
	return 0;
}

/* ---- user and capabilities ------------------------------------------------------------------- */

static int become(const struct identity *id, struct err *e)
{
	if (setgroups(0, NULL) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
	    setresuid(id->uid, id->uid, id->uid) < 0)
		return err_set(
			e, -errno,
			"become user %u, without groups; in a user namespace that lacks this "
			"id, make a user '" JAIL_USER "' with one that it has, or start as an "
			"ordinary user",
			id->uid);
	return 0;
}

static int leave_privilege(const struct identity *id, struct jail_report *r, struct err *e)
{
	bool root = id->uid != 0;
	int code;

	if (root) {
		code = caps_bound(0);
		if (code < 0)
			return err_set(e, code, "empty the capability bounding set");
		if (become(id, e) < 0)
			return e->code;
	}
	code = caps_drop();
	if (code < 0)
		return err_set(e, code, "drop capabilities");
	/* Asked of the kernel, not concluded: the way back must be closed. */
	if (root && (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0))
		return err_say(e, -EPERM, "still able to become root after giving it up");
	r->user = root;
	r->caps = true;
	r->uid = geteuid();
	return 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

static int settle(struct jail_report *r, struct err *e)
{
	const struct rlimit no_core = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_set(e, -errno, "set RLIMIT_CORE");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "set no-new-privileges");
	r->no_new_privs = true;
	/* After the change of user, which sets it anew: memory holds tokens and keys of TLS. */
	if (prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0) < 0)
		return err_set(e, -errno, "become undumpable");
	/* The one we came with is the administrator's. A kernel without keys has nothing to give
	 * up, and where a container refuses the call it refuses the keys as well. */
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return 0;
}

static int deny_files(struct jail_report *r, struct err *e)
{
	int abi = SANITIZED ? 0 : landlock_deny_all();

	if (abi < 0)
		return err_set(e, abi, "enter a Landlock domain");
	r->landlock = abi > 0;
	r->landlock_abi = (unsigned int)abi;
	return 0;
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* A kernel that has filters looks for the program, and there is none. */
static bool kernel_has_filters(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) < 0 && errno == EFAULT;
}

/*
 * tgkill only to ourselves. An ordinary user's front has that user's other processes within reach,
 * and on a kernel whose Landlock has no scopes nothing else keeps them apart. The architecture
 * needs no look: calls of another one fail in the other filter.
 */
static int pin_tgkill(struct err *e)
{
	const struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 3),
		/* The low half: little endian, as all that seccomp-gen knows. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return seccomp_install_program(program, ARRAY_SIZE(program), e);
}

static int filter_calls(struct jail_report *r, struct err *e)
{
	if (SANITIZED || !kernel_has_filters())
		return 0;
	if (pin_tgkill(e) < 0 ||
	    seccomp_install_program(FRONT_FILTER, ARRAY_SIZE(FRONT_FILTER), e) < 0)
		return err_wrap(e, "enter the jail");
	r->seccomp = true;
	return 0;
}

int jail_enter(struct jail_report *ret, struct err *e)
{
	struct err local = { 0 };
	struct jail_report r = { 0 };
	struct identity id;

	if (!e)
		e = &local;
	if (prime_libraries(e) < 0 || find_identity(&id, e) < 0 || check_one_thread(e) < 0 ||
	    leave_privilege(&id, &r, e) < 0 || settle(&r, e) < 0 || deny_files(&r, e) < 0 ||
	    filter_calls(&r, e) < 0)
		return e->code;
	*ret = r;
	return 0;
}
