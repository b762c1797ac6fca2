/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.c - Starting caisson-unpack where it can do no harm, three times for each layer.
 *
 *     archive -> inflate -> hash -> files -> the layer's directory
 *
 * `inflate` and `files` parse a stranger's bytes, which may take them over. Layers of the store are
 * shared by all images that name the same diff_id, the hash of the uncompressed archive. So neither
 * of the two may report that hash: the layer of another image could be replaced. `hash`, the
 * process between them, parses nothing and reports the hash of exactly the bytes that the files are
 * made of. An attacker who takes over `inflate` can send any bytes, and these are hashed; an
 * attacker who takes over `files` determines the files of an archive that did this, under that
 * archive's hash.
 *
 * As root, the child's user namespace has the ids of the image store: its root is the host's user
 * IMAGE_ID_BASE, which owns nothing but layers. Otherwise the namespace has one user, the caller.
 * The program is executed, not only forked, so that nothing of this process, such as a registry's
 * password, is in its memory.
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/idmap.h"
#include "client/program.h"

#define PROGRAM "caisson-unpack"
#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)
#define FIRST_FREE_FD 10 /* above those that the program gets */

_Static_assert(IMAGE_ID_COUNT == IDMAP_COUNT,
	       "the range of the image store is as large as a cell's");

struct idmap layer_ids(void)
{
	struct idmap m;

	idmap_choose(0, &m);
	m.base = IMAGE_ID_BASE;
	m.self = 0;
	return m;
}

/* Everything that the child needs, computed before it is cloned. */
struct start {
	int go, go_out; /* both ends; the parent writes to the second */
	int fds[6];     /* descriptors 0 to 4 of the program, and the program itself */
	char bytes[24], entries[24];
	const char *step, *ranged;
};

/* ---- the child: system calls only ---------------------------------------------------------- */

static _Noreturn void child(const struct start *st)
{
	const int n = (int)ARRAY_SIZE(st->fds);
	char *argv[] = { (char *)PROGRAM,     (char *)st->step,   (char *)st->bytes,
			 (char *)st->entries, (char *)st->ranged, NULL };
	char *env[] = { NULL };
	int high[ARRAY_SIZE(st->fds)];
	char word;

	(void)close(st->go_out); /* or the end of a parent that is killed now would not be seen */
	if (read(st->go, &word, 1) != 1)
		_exit(1);
	if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
		_exit(1);
	/* First above the numbers that they go to, so that no copy overwrites one still needed. */
	for (int i = 0; i < n; i++)
		if ((high[i] = fcntl(st->fds[i], F_DUPFD, FIRST_FREE_FD)) < 0)
			_exit(1);
	for (int i = 0; i < n; i++)
		if (dup2(high[i], i) < 0)
			_exit(1);
	if (syscall(SYS_close_range, (unsigned int)n, ~0u, 0u) < 0 ||
	    fcntl(n - 1, F_SETFD, FD_CLOEXEC) < 0)
		_exit(1);
	(void)syscall(SYS_execveat, n - 1, "", argv, env, AT_EMPTY_PATH);
	_exit(1);
}

/* ---- the parent ---------------------------------------------------------------------------- */

static int open_program(struct err *e)
{
	char path[4096];
	int fd, r = program_find(PROGRAM, path, sizeof(path), e);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_set(e, -errno, "open %s", path) : fd;
}

static int make_pipe(int *in, int *out, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	*in = ends[0];
	*out = ends[1];
	return 0;
}

static pid_t start(const struct start *st, const struct idmap *ids, struct err *e)
{
	struct clone_args args = { .flags = NAMESPACES, .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	int r;

	if (pid < 0)
		return err_set(e, -errno, "make user namespaces, which unpacking an image takes");
	if (pid == 0)
		child(st);
	r = idmap_write(ids, pid, e);
	if (r == 0 && (r = fd_write_all(st->go_out, "g", 1)) < 0)
		(void)err_set(e, r, "start the unpacker");
	if (r == 0)
		return pid;
	(void)kill(pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	return r;
}

static uint64_t bytes_allowed(uint64_t size)
{
	uint64_t by_ratio = size < UNPACK_BYTES_MAX / UNPACK_RATIO_MAX ? size * UNPACK_RATIO_MAX :
									 UNPACK_BYTES_MAX;

	return by_ratio > UNPACK_RATIO_FROM ? by_ratio : UNPACK_RATIO_FROM;
}

/* One step. @in, @out: -1: /dev/null. */
static int launch(struct layer_step *to, const char *step, int in, int out, int dir, uint64_t bytes,
		  struct err *e)
{
	const struct idmap ids = layer_ids();
	_fd_ int program = open_program(e), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	_fd_ int go_in = -1, go_out = -1, report_in = -1, report_out = -1;

	if (program < 0)
		return program;
	if (null < 0)
		return err_set(e, -errno, "open /dev/null");
	if (make_pipe(&go_in, &go_out, e) < 0 || make_pipe(&report_in, &report_out, e) < 0)
		return e->code;
	struct start st = { .go = go_in,
			    .go_out = go_out,
			    .fds = { in < 0 ? null : in, out < 0 ? null : out, null, report_out,
				     dir, program },
			    .step = step,
			    .ranged = ids.ranged ? "1" : "0" };

	(void)snprintf(st.bytes, sizeof(st.bytes), "%" PRIu64, bytes);
	(void)snprintf(st.entries, sizeof(st.entries), "%llu", UNPACK_ENTRIES_MAX);
	pid_t pid = start(&st, &ids, e);

	if (pid < 0)
		return pid;
	to->pid = pid;
	to->report = TAKE_FD(report_in);
	return 0;
}

static void end_step(struct layer_step *st)
{
	if (!st->pid)
		return;
	(void)kill(st->pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(st->pid, NULL, 0));
	st->pid = 0;
	st->report = fd_close(st->report);
}

/* The users of the unpacker could not enter the directory otherwise. */
static int give_away(int dir, struct err *e)
{
	if (layer_ids().ranged && fchown(dir, IMAGE_ID_BASE, IMAGE_ID_BASE) < 0)
		return err_set(e, -errno, "give a directory to the image store's users");
	return 0;
}

/* The two steps that need no files: their root is a directory that was removed. */
static int launch_readers(struct layer_job *job, const struct store *s, int archive, int to,
			  struct err *e)
{
	char name[STORE_NAME_MAX];
	_fd_ int in = -1, out = -1, nowhere = store_tree_new(s, name, e);

	if (nowhere < 0)
		return nowhere;
	store_tree_drop(s, name);
	if (give_away(nowhere, e) < 0 || make_pipe(&in, &out, e) < 0)
		return e->code;
	int r = launch(&job->inflate, UNPACK_INFLATE, archive, out, nowhere, 0, e);

	return r == 0 ? launch(&job->hash, UNPACK_HASH, in, to, nowhere, 0, e) : r;
}

static int launch_all(struct layer_job *job, const struct store *s, int dir, int archive,
		      uint64_t bytes, struct err *e)
{
	_fd_ int in = -1, out = -1;

	if (give_away(dir, e) < 0 || make_pipe(&in, &out, e) < 0)
		return e->code;
	int r = launch_readers(job, s, archive, out, e);

	return r == 0 ? launch(&job->files, UNPACK_FILES, in, -1, dir, bytes, e) : r;
}

static void end_steps(struct layer_job *job)
{
	end_step(&job->inflate);
	end_step(&job->hash);
	end_step(&job->files);
}

int layer_begin(struct layer_job *job, const struct store *s, int archive, uint64_t size,
		struct err *e)
{
	*job = LAYER_JOB_NONE;
	_fd_ int dir = store_tree_new(s, job->tree, e);

	if (dir < 0)
		return dir;
	int r = lseek(archive, 0, SEEK_SET) < 0 ?
			err_set(e, -errno, "read a layer") :
			launch_all(job, s, dir, archive, bytes_allowed(size), e);

	if (r < 0) {
		end_steps(job);
		store_tree_drop(s, job->tree);
	}
	return r;
}

static int read_report(int fd, struct unpack_report *ret)
{
	if (fd_read_full(fd, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
		return -EPIPE;
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
			"the unpacker ended without a report: the layer is damaged, or memory is "
			"short");
	if (ret->code != 0)
		return err_say(e, ret->code < 0 ? ret->code : -EIO, "%s", ret->msg);
	return 0;
}

/* When the last step has read to its end, the steps before it have reported. If it has not, its own
 * report has the reason. */
static bool has_reported(const struct layer_step *st)
{
	struct pollfd p = { .fd = st->report, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int take_reports(struct layer_job *job, struct unpack_report *ret, struct err *e)
{
	struct layer_step *const before[] = { &job->inflate, &job->hash };
	struct unpack_report before_it = { 0 };
	struct err last = { 0 }, first = { 0 };
	int r = take_report(&job->files, ret, &last);

	ret->diff_id[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		if (first.code)
			;
		else if (has_reported(before[i]))
			(void)take_report(before[i], &before_it, &first);
		else
			(void)err_say(&first, -EPIPE, "the layer was not read to its end");
		end_step(before[i]);
	}
	/* EPIPE: the last step ended first, and has the reason. */
	if (first.code && (r == 0 || first.code != -EPIPE))
		return err_say(e, first.code, "%s", first.msg);
	if (r < 0)
		return err_say(e, r, "%s", last.msg);
	memcpy(ret->diff_id, before_it.diff_id, sizeof(ret->diff_id));
	return 0;
}

/* Only the report of the step that hashes can be trusted, and only its diff_id is compared. */
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
	end_steps(job);
	store_tree_drop(s, job->tree);
}

int layer_verify(const struct store *s, const char *diff_id, struct err *e)
{
	_fd_ int dir = openat(s->layers, digest_hex(diff_id),
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct layer_step step = { .report = -1 };
	char want[IMAGE_DIGEST_MAX];
	struct unpack_report report;
	int r;

	if (dir < 0)
		return err_set(e, -errno, "open layer %s", diff_id);
	if ((r = store_seal_read(s, diff_id, want, e)) < 0 ||
	    (r = launch(&step, UNPACK_SEAL, -1, -1, dir, 0, e)) < 0 ||
	    (r = take_report(&step, &report, e)) < 0)
		return r;
	if (strcmp(report.seal, want) != 0)
		return err_say(
			e, -EBADMSG,
			"layer %s is not what was unpacked: remove the image and pull it again",
			diff_id);
	return 0;
}
