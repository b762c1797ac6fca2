/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.c - Starting caisson-unpack where it can do no harm.
 *
 * As root the child's user namespace has the range of the image store: its root is the host's user IMAGE_ID_BASE,
 * which owns nothing but layers. As anybody else the namespace has one user, the caller. The program is
 * executed, not only forked, so that nothing of this process, a registry's password for example, is in
 * its memory.
 */
#include "image/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/idmap.h"
#include "client/program.h"
#include "image/digest.h"

#define PROGRAM "caisson-unpack"
#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)
#define FIRST_FREE_FD 10 /* above those that the program gets */

bool layer_ranged(void)
{
	struct idmap m;

	idmap_choose(0, &m);
	return m.ranged;
}

/* What the child needs; everything computed before it is cloned. */
struct start {
	int go, archive, report, dir, null, program;
	char bytes[24], entries[24];
	const char *ranged;
};

/* ---- the child: system calls only ----------------------------------------------------------------------- */

static _Noreturn void child(const struct start *st)
{
	const int fds[] = { st->archive, st->null, st->null, st->report, st->dir, st->program };
	char *argv[] = { (char *)PROGRAM, (char *)st->bytes, (char *)st->entries,
			 (char *)st->ranged, NULL };
	char *env[] = { NULL };
	char word;

	if (read(st->go, &word, 1) != 1)
		_exit(1);
	if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
		_exit(1);
	/* All of @fds are FIRST_FREE_FD or above, so none is lost on the way. */
	for (int i = 0; i < (int)ARRAY_SIZE(fds); i++)
		if (dup2(fds[i], i) < 0)
			_exit(1);
	if (syscall(SYS_close_range, (unsigned int)ARRAY_SIZE(fds), ~0u, 0u) < 0 ||
	    fcntl((int)ARRAY_SIZE(fds) - 1, F_SETFD, FD_CLOEXEC) < 0)
		_exit(1);
	(void)syscall(SYS_execveat, (int)ARRAY_SIZE(fds) - 1, "", argv, env, AT_EMPTY_PATH);
	_exit(1);
}

/* ---- the parent ----------------------------------------------------------------------------------------- */

static int write_map(pid_t pid, const char *name, const char *text, struct err *e)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	r = fd_write_file(AT_FDCWD, path, text);
	return r < 0 ? err_set(e, r, "write %s of the unpacker's user namespace", name) : 0;
}

static int write_maps(pid_t pid, bool ranged, struct err *e)
{
	char uids[64], gids[64];
	int r = 0;

	if (ranged) {
		(void)snprintf(uids, sizeof(uids), "0 %u %u\n", IMAGE_ID_BASE, IMAGE_ID_COUNT);
		memcpy(gids, uids, sizeof(gids));
	} else {
		(void)snprintf(uids, sizeof(uids), "0 %u 1\n", (unsigned int)geteuid());
		(void)snprintf(gids, sizeof(gids), "0 %u 1\n", (unsigned int)getegid());
		r = write_map(pid, "setgroups", "deny", e);
	}
	if (r == 0)
		r = write_map(pid, "uid_map", uids, e);
	return r == 0 ? write_map(pid, "gid_map", gids, e) : r;
}

static int open_program(struct err *e)
{
	char path[4096];
	int fd, r = program_find(PROGRAM, path, sizeof(path), e);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_set(e, -errno, "open %s", path) : fd;
}

static int above(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static pid_t start(const struct start *st, int go, bool ranged, struct err *e)
{
	struct clone_args args = { .flags = NAMESPACES, .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	int r;

	if (pid < 0)
		return err_set(e, -errno, "make user namespaces, which unpacking an image takes");
	if (pid == 0)
		child(st);
	r = write_maps(pid, ranged, e);
	if (r == 0)
		r = fd_write_all(go, "g", 1);
	if (r == 0)
		return pid;
	(void)kill(pid, SIGKILL);
	reap(pid);
	return e && e->code ? r : err_set(e, r, "start the unpacker");
}

static uint64_t bytes_allowed(uint64_t size)
{
	uint64_t by_ratio = size < UNPACK_BYTES_MAX / UNPACK_RATIO_MAX ? size * UNPACK_RATIO_MAX :
									 UNPACK_BYTES_MAX;

	return by_ratio > UNPACK_RATIO_FROM ? by_ratio : UNPACK_RATIO_FROM;
}

static int launch(struct layer_job *job, int dir, int archive, uint64_t bytes, struct err *e)
{
	bool ranged = layer_ranged();
	_fd_ int program = open_program(e);
	int go[2] = { -1, -1 }, report[2] = { -1, -1 };

	if (program < 0)
		return program;
	if (ranged && bytes && fchown(dir, IMAGE_ID_BASE, IMAGE_ID_BASE) < 0)
		return err_set(e, -errno, "give a directory to the image store's users");
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0) {
		fd_close(go[0]);
		fd_close(go[1]);
		return err_set(e, -errno, "make a pipe");
	}
	_fd_ int go_in = above(go[0]), report_out = above(report[1]), dir_copy = above(dir);
	_fd_ int archive_copy = above(archive), program_copy = above(program);
	_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC), null_copy = above(null);
	struct start st = { .go = go_in,
			    .archive = archive_copy,
			    .report = report_out,
			    .dir = dir_copy,
			    .null = null_copy,
			    .program = program_copy,
			    .ranged = ranged ? "1" : "0" };

	fd_close(go[0]);
	fd_close(report[1]);
	(void)snprintf(st.bytes, sizeof(st.bytes), "%" PRIu64, bytes);
	(void)snprintf(st.entries, sizeof(st.entries), "%llu", UNPACK_ENTRIES_MAX);
	job->pid = start(&st, go[1], ranged, e);
	fd_close(go[1]);
	if (job->pid < 0) {
		fd_close(report[0]);
		int r = job->pid;

		job->pid = 0;
		return r;
	}
	job->report = report[0];
	return 0;
}

int layer_begin(struct layer_job *job, const struct store *s, int archive, uint64_t size,
		struct err *e)
{
	int r;

	*job = (struct layer_job){ .report = -1 };
	_fd_ int dir = store_tree_new(s, job->tree, e);

	if (dir < 0)
		return dir;
	if (lseek(archive, 0, SEEK_SET) < 0)
		r = err_set(e, -errno, "read a layer");
	else
		r = launch(job, dir, archive, bytes_allowed(size), e);
	if (r < 0)
		store_tree_drop(s, job->tree);
	return r;
}

static int read_report(int fd, struct unpack_report *ret)
{
	size_t at = 0;

	while (at < sizeof(*ret)) {
		ssize_t n = read(fd, (char *)ret + at, sizeof(*ret) - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		at += (size_t)n;
	}
	ret->msg[sizeof(ret->msg) - 1] = '\0';
	ret->diff_id[sizeof(ret->diff_id) - 1] = '\0';
	ret->seal[sizeof(ret->seal) - 1] = '\0';
	return 0;
}

static int take_report(struct layer_job *job, struct unpack_report *ret, struct err *e)
{
	int r = read_report(job->report, ret);

	(void)kill(job->pid, SIGKILL);
	reap(job->pid);
	job->pid = 0;
	job->report = fd_close(job->report);
	if (r < 0)
		return err_say(
			e, -EIO,
			"the unpacker ended without a word: the layer is damaged, or memory is short");
	if (ret->code != 0)
		return err_say(e, ret->code < 0 ? ret->code : -EIO, "%s", ret->msg);
	return 0;
}

/* The report is a stranger's word too: only what is compared with what we know counts. */
int layer_end(struct layer_job *job, const struct store *s, const char *diff_id,
	      struct unpack_report *ret, struct err *e)
{
	int r = take_report(job, ret, e);

	if (r == 0 && diff_id && strcmp(ret->diff_id, diff_id) != 0)
		r = err_say(e, -EBADMSG,
			    "the layer unpacks to %.71s and not to %s, as the image says",
			    ret->diff_id, diff_id);
	if (r < 0)
		store_tree_drop(s, job->tree);
	return r;
}

void layer_abort(struct layer_job *job, const struct store *s)
{
	if (!job->pid)
		return;
	(void)kill(job->pid, SIGKILL);
	reap(job->pid);
	job->pid = 0;
	job->report = fd_close(job->report);
	store_tree_drop(s, job->tree);
}

int layer_verify(const struct store *s, const char *diff_id, struct err *e)
{
	_fd_ int dir = openat(s->layers, digest_hex(diff_id),
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct layer_job job = { .report = -1 };
	char want[IMAGE_DIGEST_MAX];
	struct unpack_report report;
	int r = dir < 0 ? err_set(e, -errno, "open layer %s", diff_id) :
			  store_seal_read(s, diff_id, want, e);

	if (r == 0)
		r = launch(&job, dir, dir, 0, e);
	if (r == 0)
		r = take_report(&job, &report, e);
	if (r == 0 && strcmp(report.seal, want) != 0)
		r = err_say(e, -EBADMSG,
			    "layer %s is not what was unpacked: remove the image and pull it again",
			    diff_id);
	return r;
}
