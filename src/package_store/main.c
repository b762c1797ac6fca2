/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - caisson-package-store: keeps installed packages, and has no other power.
 *
 * Theory of operation. Cells share trees of packages, and the content of a tree comes from a cell
 * in which a stranger's build ran. One process reads and writes the trees, and can make and remove
 * files below one directory and nothing else: own user (as root), no capability, that directory as
 * its root, Landlock, and a filter without sockets, programs and processes
 * (policy/package-store.policy). The front alone sends requests (wire/package_store.h). One thread
 * unpacks up to PACKAGE_STORE_JOBS_MAX trees at a time and never waits for a cell.
 *
 * tree_store/tree_store.h has the start, the jail and the replacement of a worker that is killed.
 * docs/internals/processes.md argues why this is not the program that keeps workspaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "cell/landlock.h"
#include "package_store/package_dir.h"
#include "package_store_filter.h"
#include "tree_store/tree.h"
#include "tree_store/tree_store.h"
#include "wire/package_store.h"

_Static_assert(PACKAGE_STORE_FD == TREE_STORE_FD && PACKAGE_STORE_DIR_FD == TREE_STORE_DIR_FD &&
		       PACKAGE_STORE_KEY_LEN == TREE_KEY_LEN,
	       "as the stores have them");

/* ---- trees that the front knows ------------------------------------------------------------ */

/* A front knows some hundred trees at most. */
static struct kept {
	char (*keys)[PACKAGE_STORE_KEY_LEN + 1];
	size_t n, cap;
} kept;

static int keep(const char *key)
{
	if (mem_grow(&kept.keys, &kept.cap, kept.n + 1, sizeof(*kept.keys)) < 0)
		return -ENOMEM;
	memcpy(kept.keys[kept.n++], key, sizeof(*kept.keys));
	return 0;
}

static bool is_kept(const char *key)
{
	for (size_t i = 0; i < kept.n; i++)
		if (strcmp(kept.keys[i], key) == 0)
			return true;
	return false;
}

/* Keep the tree if it has not changed. The seal is cheap; if it differs, the content decides. */
static int take_back(const struct package_store_req *q, struct package_store_reply *r,
		     struct err *e)
{
	_fd_ int root = openat(PACKAGE_STORE_DIR_FD, q->key,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char hash[65];

	if (root < 0)
		return err_set(e, errno == ENOTDIR || errno == ELOOP ? -ENOENT : -errno, "%s",
			       q->key);
	if (digest_tree(root, false, r->seal, e) < 0)
		return e->code;
	if (strcmp(r->seal, q->seal) != 0) {
		if (digest_tree(root, true, hash, e) < 0)
			return e->code;
		if (strcmp(hash, q->sha256) != 0)
			return err_say(e, -EBADMSG, "its content has the hash %s", hash);
	}
	return keep(q->key);
}

/* ---- requests ------------------------------------------------------------------------------ */

static struct intake jobs[PACKAGE_STORE_JOBS_MAX];

static void answer(struct package_store_reply *r)
{
	r->version = PACKAGE_STORE_VERSION;
	if (fd_send(PACKAGE_STORE_FD, r, sizeof(*r), NULL, 0) < 0)
		_exit(1);
}

static void store(const struct package_store_req *q, int fd)
{
	struct package_store_reply r = { .op = q->op, .seq = q->seq };
	struct intake *in = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(jobs) && !in; i++)
		in = jobs[i].seq ? NULL : &jobs[i];
	if (!in || fd < 0) {
		r.code = fd < 0 ? -EBADF : -EBUSY;
		fd_close(fd);
		answer(&r);
	} else if (intake_begin(in, PACKAGE_STORE_DIR_FD, q, fd) < 0) {
		intake_end(in, &r);
		answer(&r);
	}
}

static void serve(struct package_store_req *q, int fd)
{
	struct package_store_reply r = { .op = q->op, .seq = q->seq };
	struct err e = { 0 };
	int code = -EINVAL;

	q->key[sizeof(q->key) - 1] = q->sha256[sizeof(q->sha256) - 1] = '\0';
	q->seal[sizeof(q->seal) - 1] = '\0';
	if (q->op == PACKAGE_STORE_STORE && q->seq) {
		store(q, fd);
		return;
	}
	fd_close(fd);
	if (q->op == PACKAGE_STORE_SWEEP)
		code = package_dir_sweep(PACKAGE_STORE_DIR_FD, is_kept, &e);
	else if (q->op == PACKAGE_STORE_DROP && tree_key_ok(q->key))
		code = package_dir_drop(PACKAGE_STORE_DIR_FD, q->key, false, &e);
	else if (q->op == PACKAGE_STORE_KEEP && tree_key_ok(q->key))
		code = take_back(q, &r, &e);
	else
		(void)err_say(&e, code, "unknown request");
	r.code = code < 0 ? code : 0;
	(void)snprintf(r.msg, sizeof(r.msg), "%.255s", code < 0 ? e.msg : "");
	answer(&r);
}

static void go_on(struct intake *in)
{
	struct package_store_reply r = { .op = PACKAGE_STORE_STORE, .seq = in->seq };

	if (!intake_read(in))
		return;
	intake_end(in, &r);
	answer(&r);
}

static int run(void)
{
	struct package_store_req q;
	int got = 0, fd;

	while (got >= 0) {
		struct pollfd p[1 + PACKAGE_STORE_JOBS_MAX] = { { .fd = PACKAGE_STORE_FD,
								  .events = POLLIN } };

		for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
			p[1 + i] = (struct pollfd){ .fd = jobs[i].seq ? jobs[i].fd : -1,
						    .events = POLLIN };
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return 1;
		for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
			if (p[1 + i].revents && jobs[i].seq)
				go_on(&jobs[i]);
		got = p[0].revents ? tree_store_receive(&q, sizeof(q), PACKAGE_STORE_VERSION, &fd) :
				     0;
		if (got > 0)
			serve(&q, fd);
	}
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct package_store_reply ignored = { 0 };

		if (!jobs[i].seq)
			continue;
		(void)err_say(&jobs[i].err, -ECANCELED, "the daemon ends");
		intake_end(&jobs[i], &ignored);
	}
	return 0;
}

/* ---- the program --------------------------------------------------------------------------- */

/* A worker that was killed may have left unfinished trees: sweep all that have no name. */
static int work(uint32_t life)
{
	struct package_store_reply r = { .op = PACKAGE_STORE_AGAIN };
	struct err e = { 0 };

	if (life > 0 && package_dir_sweep(PACKAGE_STORE_DIR_FD, NULL, &e) < 0)
		(void)fprintf(stderr, "caisson-package-store: %s\n", e.msg);
	if (life > 0)
		answer(&r);
	return run();
}

int main(int argc, char **argv)
{
	static const struct tree_store program = {
		.name = "caisson-package-store",
		.umask = 022,
		.rights = LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_DIR |
			  LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR |
			  LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SYM | LANDLOCK_TRUNCATE,
		.filter = PACKAGE_STORE_FILTER,
		.filter_len = ARRAY_SIZE(PACKAGE_STORE_FILTER),
		.work = work,
	};

	(void)foreign_init();
	return tree_store_main(&program, argc, argv);
}
