/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_main.c - caisson-unpack: one step from a layer's archive to its files, and nothing else.
 *
 * Theory of operation. An archive is a stranger's, and two decompressors and a tar reader parse it.
 * So that is done by a process without any power: layer.c starts it in user, mount, pid, network,
 * ipc, uts and cgroup namespaces of its own, with the users of the image store and no others (as
 * root), or with the caller as its only user. Here it makes the layer's directory its root, gives
 * up every capability but those to set owners and modes of files, which count in that user
 * namespace alone, and puts a Landlock domain and a system call filter (policy/unpack.policy) on
 * itself. It has the descriptors of its step, and a pipe for one report.
 *
 * An attacker who takes over one of these processes controls its report. So a layer takes three of
 * them (layer.c). The root of the first two is a directory that has been removed.
 *
 * usage: caisson-unpack STEP BYTES ENTRIES RANGED    (started by caisson image, not by hand)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "image/image_store.h"
#include "image/unpack.h"
#include "unpack_filter.h"

#define MEMORY_MAX (1ull << 30)

#define CAPS                                                                                       \
	(UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER)

static int limit(int what, uint64_t value)
{
	const struct rlimit l = { value, value };

	return setrlimit((unsigned int)what, &l) < 0 ? -errno : 0;
}

static int limits(uint64_t bytes)
{
	int r;

	if ((r = limit(RLIMIT_CORE, 0)) < 0 || (r = limit(RLIMIT_FSIZE, bytes)) < 0 ||
	    (r = limit(RLIMIT_NOFILE, UNPACK_DEPTH_MAX + 64)) < 0 || POWER_SANITIZED)
		return r;
	return limit(RLIMIT_AS, MEMORY_MAX);
}

static bool is(const char *step, const char *name)
{
	return strcmp(step, name) == 0;
}

static int enter_jail(const char *step, uint64_t bytes, struct err *e)
{
	bool has_tree = is(step, UNPACK_FILES) || is(step, UNPACK_SEAL);
	const struct landlock_dir tree = { UNPACK_DIR_FD,
					   LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE |
						   LANDLOCK_READ_DIR | LANDLOCK_REMOVE_FILE |
						   LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG |
						   LANDLOCK_MAKE_SYM | LANDLOCK_MAKE_CHAR |
						   LANDLOCK_REFER | LANDLOCK_TRUNCATE };
	int r;

	if (fchdir(UNPACK_DIR_FD) < 0 || chroot(".") < 0)
		return err_set(e, -errno, "make the layer's directory the root");
	if ((r = limits(bytes)) < 0 || (r = caps_keep(has_tree ? CAPS : 0, 0)) < 0)
		return err_set(e, r, "enter the jail");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "set no-new-privileges");
	return power_confine(&tree, has_tree, UNPACK_FILTER, ARRAY_SIZE(UNPACK_FILTER), e);
}

static int work(const char *step, const struct unpack_limits *l, struct unpack_report *ret,
		struct err *e)
{
	int r = -EINVAL;

	if (is(step, UNPACK_INFLATE))
		return unpack_inflate(STDIN_FILENO, STDOUT_FILENO, e);
	if (is(step, UNPACK_HASH))
		return (r = digest_fd(STDIN_FILENO, STDOUT_FILENO, ret->diff_id)) < 0 ?
			       err_set(e, r, "hash the layer") :
			       0;
	if (is(step, UNPACK_FILES))
		r = unpack(STDIN_FILENO, UNPACK_DIR_FD, l, ret, e);
	else if (is(step, UNPACK_SEAL))
		r = 0;
	return r == 0 ? seal_tree(UNPACK_DIR_FD, ret->seal, e) : r;
}

int main(int argc, char **argv)
{
	struct unpack_report report = { 0 };
	struct unpack_limits l;
	struct err e = { 0 };
	char warm[IMAGE_DIGEST_MAX];
	int r;

	if (argc != 5 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    fcntl(UNPACK_REPORT_FD, F_GETFD) < 0 || fcntl(UNPACK_DIR_FD, F_GETFD) < 0) {
		(void)fprintf(stderr, "caisson-unpack: started by caisson image, not by hand\n");
		return 2;
	}
	l = (struct unpack_limits){ strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
				    argv[4][0] == '1' };
	/* Libraries open their files now: locale (UTF-8 names), OpenSSL's configuration. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)digest_of("", 0, warm);
	(void)umask(0);
	(void)signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error of write(2) */
	(void)signal(SIGPIPE, SIG_IGN); /* the step that reads from us reports the reason */
	r = enter_jail(argv[1], l.bytes, &e);
	if (r == 0)
		r = work(argv[1], &l, &report, &e);
	report.code = r;
	if (r < 0)
		(void)snprintf(report.msg, sizeof(report.msg), "%.299s", e.msg);
	return fd_write_all(UNPACK_REPORT_FD, &report, sizeof(report)) < 0 || r < 0;
}
