/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_store.c - A store's start, its jail and its workers; and the archives that it gets of cells.
 *
 * A front in its jail cannot start a program. So the process that it started before only gives up
 * its privileges, forks the worker, and forks another one when that is killed. It reads nothing,
 * and has the rights of the worker before Landlock and the filter.
 */
#include "tree_store/tree_store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/supervise.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "tree_store/tree.h"

#define DEATHS_MAX 100u
#define AGAIN_MS 100u

static int leave_privilege(const struct tree_store *t, uid_t uid, gid_t gid, struct err *e)
{
	const struct power_user user = { .uid = uid, .gid = gid };

	if (t->prepare && t->prepare(e) < 0)
		return e->code;
	if ((!t->needs_proc || tree_can_mend()) && power_root(TREE_STORE_DIR_FD, e) < 0)
		return e->code;
	if (power_leave(&user, e) < 0)
		return e->code;
	(void)umask(t->umask); /* after prepare(): a process that it starts keeps the inherited one
				*/
	return power_settle(e);
}

static int failed(const struct tree_store *t, const struct err *e)
{
	(void)fprintf(stderr, "%s: %s\n", t->name, e->msg);
	return 1;
}

static int work(void *arg, uint32_t life)
{
	const struct tree_store *t = *(const struct tree_store *const *)arg;
	const struct landlock_dir dir = { TREE_STORE_DIR_FD, t->rights };
	struct err e = { 0 };

	if (power_confine(&dir, 1, t->filter, t->filter_len, &e) < 0)
		return failed(t, &e);
	return t->work(life);
}

int tree_store_main(const struct tree_store *t, int argc, char **argv)
{
	const struct supervise workers = { .work = work,
					   .arg = &t,
					   .lives_max = DEATHS_MAX,
					   .failed = 1,
					   .bury_all = t->bury_all,
					   .pause_ms = AGAIN_MS };
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the group; the socket tells the end */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (argc != 3 || fcntl(TREE_STORE_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(TREE_STORE_DIR_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "%s: started by caisson serve, not by hand\n", t->name);
		return 2;
	}
	if (leave_privilege(t, (uid_t)strtoul(argv[1], NULL, 10), (gid_t)strtoul(argv[2], NULL, 10),
			    &e) < 0)
		return failed(t, &e);
	return supervise(&workers);
}

int tree_store_receive(void *request, size_t size, uint32_t version, int *ret_fd)
{
	size_t n_fds = 1;
	ssize_t n = fd_recv(TREE_STORE_FD, request, size, ret_fd, &n_fds);
	uint32_t got = 0;

	if (n_fds == 0)
		*ret_fd = -1;
	if (n == -EAGAIN)
		return 0;
	if (n == (ssize_t)size)
		memcpy(&got, request, sizeof(got));
	return got == version ? 1 : -1;
}

/* ---- archives of cells ---------------------------------------------------------------------- */

/*
 * Every byte may come from hostile code: the parser of frames (client/files_client.h) and the
 * reader of archives (archive/tar_reader.h) check what they pass on. This call has frames of
 * content and one end; any other frame is malformed.
 */

static int on_data(void *arg, const char *data, size_t len)
{
	struct cell_archive *a = arg;

	return tar_feed(&a->reader, a->sink, a->arg, data, len, a->e);
}

static int on_end(void *arg, const struct files_end *end, struct files_text where)
{
	struct cell_archive *a = arg;

	if (end->error)
		return err_set(a->e, -end->error, "pack '%.*s' in the cell",
			       where.len < 150 ? (int)where.len : 150, where.data);
	if (!tar_ended(&a->reader))
		return err_say(a->e, -EBADMSG, "the archive has no end");
	a->changed = end->flags & FILES_CHANGED;
	a->ended = true;
	return 0;
}

int cell_archive_feed(struct cell_archive *a, const void *data, size_t len)
{
	static const struct files_sink sink = { .data = on_data, .end = on_end };
	int r = files_feed(&a->parser, &sink, a, data, len);

	if (r < 0 && !a->e->code)
		(void)err_say(a->e, r, "the cell sent malformed frames");
	return r;
}

void cell_archive_free(struct cell_archive *a)
{
	tar_reader_free(&a->reader);
	files_parser_free(&a->parser);
}
