/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.c - Starting caisson-unpack where it can do no harm, three times for each layer.
 *
 *     archive -> inflate -> hash -> files -> the layer's directory
 *
 * What inflates, and what makes files, parse a stranger's bytes and may be taken over by them.
 * Layers of the store are shared by all images that name the same diff_id, the hash of the
 * uncompressed archive, so that hash must not be theirs to say: another image's layer could be
 * replaced. It is said by the process between them, which parses nothing, of exactly the bytes that
 * the files are made of. Whoever takes `inflate` over can give the next one any bytes, and they are
 * hashed; whoever takes `files` over decides what becomes of an archive that took it over, which is
 * an archive of that hash.
 *
 * As root the child's user namespace has the range of the image store: its root is the host's user
 * IMAGE_ID_BASE, which owns nothing but layers. As anybody else the namespace has one user, the
 * caller. The program is executed, not only forked, so that nothing of this process, a registry's
 * password for example, is in its memory.
 */
#include "image/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
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
	int go, go_out; /* its two ends; the other one is the parent's */
	int in, out, report, dir, null, program;
	char bytes[24], entries[24];
	const char *step, *ranged;
};

/* ---- the child: system calls only ---------------------------------------------------------- */

static _Noreturn void child(const struct start *st)
{
	const int fds[] = { st->in, st->out, st->null, st->report, st->dir, st->program };
	char *argv[] = { (char *)PROGRAM,     (char *)st->step,   (char *)st->bytes,
			 (char *)st->entries, (char *)st->ranged, NULL };
	char *env[] = { NULL };
	char word;

	(void)close(st->go_out); /* or the end of a parent that is killed now would not be seen */
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

/* ---- the parent ---------------------------------------------------------------------------- */

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

/* One step. @in, @out: -1 is none. */
static int launch(struct layer_step *to, const char *step, int in, int out, int dir, uint64_t bytes,
		  struct err *e)
{
	bool ranged = layer_ranged();
	_fd_ int program = open_program(e);
	int go[2] = { -1, -1 }, report[2] = { -1, -1 };

	if (program < 0)
		return program;
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0) {
		fd_close(go[0]);
		fd_close(go[1]);
		return err_set(e, -errno, "make a pipe");
	}
	_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC), null_copy = above(null);
	_fd_ int go_in = above(go[0]), report_out = above(report[1]), dir_copy = above(dir);
	_fd_ int in_copy = above(in >= 0 ? in : null), out_copy = above(out >= 0 ? out : null);
	_fd_ int program_copy = above(program);
	struct start st = { .go = go_in,
			    .go_out = go[1],
			    .in = in_copy,
			    .out = out_copy,
			    .report = report_out,
			    .dir = dir_copy,
			    .null = null_copy,
			    .program = program_copy,
			    .step = step,
			    .ranged = ranged ? "1" : "0" };

	fd_close(go[0]);
	fd_close(report[1]);
	(void)snprintf(st.bytes, sizeof(st.bytes), "%" PRIu64, bytes);
	(void)snprintf(st.entries, sizeof(st.entries), "%llu", UNPACK_ENTRIES_MAX);
	to->pid = start(&st, go[1], ranged, e);
	fd_close(go[1]);
	if (to->pid < 0) {
		fd_close(report[0]);
		int r = to->pid;

		to->pid = 0;
		return r;
	}
	to->report = report[0];
	return 0;
}

static void end_step(struct layer_step *st)
{
	if (!st->pid)
		return;
	(void)kill(st->pid, SIGKILL);
	reap(st->pid);
	st->pid = 0;
	st->report = fd_close(st->report);
}

/* To the users that it is unpacked as, who could not enter it otherwise. */
static int give_away(int dir, struct err *e)
{
	if (layer_ranged() && fchown(dir, IMAGE_ID_BASE, IMAGE_ID_BASE) < 0)
		return err_set(e, -errno, "give a directory to the image store's users");
	return 0;
}

/* The two that have nothing to do with files: their root is a directory that is not there any more.
 */
static int launch_readers(struct layer_job *job, const struct store *s, int archive, int to,
			  struct err *e)
{
	char name[STORE_NAME_MAX];
	int between[2] = { -1, -1 };
	_fd_ int nowhere = store_tree_new(s, name, e);

	if (nowhere < 0)
		return nowhere;
	store_tree_drop(s, name);
	if (give_away(nowhere, e) < 0)
		return e->code;
	if (pipe2(between, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	_fd_ int out = between[1], in = between[0];
	int r = launch(&job->inflate, UNPACK_INFLATE, archive, out, nowhere, 0, e);

	return r == 0 ? launch(&job->hash, UNPACK_HASH, in, to, nowhere, 0, e) : r;
}

static int launch_all(struct layer_job *job, const struct store *s, int dir, int archive,
		      uint64_t bytes, struct err *e)
{
	int plain[2];

	if (give_away(dir, e) < 0)
		return e->code;
	if (pipe2(plain, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	_fd_ int in = plain[0], out = plain[1];
	int r = launch_readers(job, s, archive, out, e);

	return r == 0 ? launch(&job->files, UNPACK_FILES, in, -1, dir, bytes, e) : r;
}

int layer_begin(struct layer_job *job, const struct store *s, int archive, uint64_t size,
		struct err *e)
{
	int r;

	*job = LAYER_JOB_NONE;
	_fd_ int dir = store_tree_new(s, job->tree, e);

	if (dir < 0)
		return dir;
	if (lseek(archive, 0, SEEK_SET) < 0)
		r = err_set(e, -errno, "read a layer");
	else
		r = launch_all(job, s, dir, archive, bytes_allowed(size), e);
	if (r < 0) {
		end_step(&job->inflate);
		end_step(&job->hash);
		end_step(&job->files);
		store_tree_drop(s, job->tree);
	}
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

static int take_report(struct layer_step *st, struct unpack_report *ret, struct err *e)
{
	int r = read_report(st->report, ret);

	end_step(st);
	if (r < 0)
		return err_say(
			e, -EIO,
			"the unpacker ended without a word: the layer is damaged, or memory is short");
	if (ret->code != 0)
		return err_say(e, ret->code < 0 ? ret->code : -EIO, "%s", ret->msg);
	return 0;
}

/* Those before the last have said what they have to say when that one has read to its end; if it
 * has not, it says why. */
static bool has_reported(const struct layer_step *st)
{
	struct pollfd p = { .fd = st->report, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int take_reports(struct layer_job *job, struct unpack_report *ret, struct err *e)
{
	struct layer_step *const before[] = { &job->inflate, &job->hash };
	struct unpack_report said = { 0 };
	struct err last = { 0 }, first = { 0 };
	int r = take_report(&job->files, ret, &last);

	ret->diff_id[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		if (first.code)
			;
		else if (has_reported(before[i]))
			(void)take_report(before[i], &said, &first);
		else
			(void)err_say(&first, -EPIPE, "the layer was not read to its end");
		end_step(before[i]);
	}
	/* A step that could not pass on what it read was left by the last one. */
	if (first.code && (r == 0 || first.code != -EPIPE))
		return err_say(e, first.code, "%s", first.msg);
	if (r < 0)
		return err_say(e, r, "%s", last.msg);
	memcpy(ret->diff_id, said.diff_id, sizeof(ret->diff_id));
	return 0;
}

/* Reports are a stranger's word too, but that of the step that hashes. */
int layer_end(struct layer_job *job, const struct store *s, const char *diff_id,
	      struct unpack_report *ret, struct err *e)
{
	int r = take_reports(job, ret, e);

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
	if (!job->files.pid)
		return;
	end_step(&job->inflate);
	end_step(&job->hash);
	end_step(&job->files);
	store_tree_drop(s, job->tree);
}

int layer_verify(const struct store *s, const char *diff_id, struct err *e)
{
	_fd_ int dir = openat(s->layers, digest_hex(diff_id),
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct layer_step step = { .report = -1 };
	char want[IMAGE_DIGEST_MAX];
	struct unpack_report report;
	int r = dir < 0 ? err_set(e, -errno, "open layer %s", diff_id) :
			  store_seal_read(s, diff_id, want, e);

	if (r == 0)
		r = launch(&step, UNPACK_SEAL, -1, -1, dir, 0, e);
	if (r == 0)
		r = take_report(&step, &report, e);
	if (r == 0 && strcmp(report.seal, want) != 0)
		r = err_say(e, -EBADMSG,
			    "layer %s is not what was unpacked: remove the image and pull it again",
			    diff_id);
	return r;
}
