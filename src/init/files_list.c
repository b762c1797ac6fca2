/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_list.c - What is in a directory, one level or all of them.
 *
 * In the order of the directory: sorting is for whoever asks. A single file is a list of itself,
 * with an empty name.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"
#include "init/files_io.h"
#include "init/files_path.h"
#include "init/files_walk.h"

struct list {
	const struct files_call *call;
	struct files_io *io;
	bool full; /* the limit was met, and there is more */
};

static int visit(struct walk *w, int dirfd, const char *name, const char *path,
		 const struct stat *st)
{
	struct list *l = w->arg;
	char target[FILES_PATH_MAX];

	if (l->call->q.limit > 0 && l->io->end.count >= l->call->q.limit) {
		l->full = true;
		return WALK_STOP;
	}
	io_stat(l->io, st, path, S_ISLNK(st->st_mode) ? link_read(dirfd, name, target) : NULL);
	l->io->end.count++;
	return l->io->broken ? WALK_STOP : 0;
}

int files_list(const struct files_call *c, struct files_io *io)
{
	static struct walk w;
	struct list l = { .call = c, .io = io };
	struct stat st;
	int fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR && stat(c->path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		io_stat(io, &st, "", NULL);
		io->end.count = 1;
		return 0;
	}
	if (fd < 0)
		return errno;
	w = (struct walk){
		.visit = visit,
		.arg = &l,
		.depth = c->q.flags & FILES_RECURSIVE ? c->q.depth : 0,
	};
	int r = walk_dir(&w, fd);

	/* One level is all that was asked for: that there are more is no news. */
	if (l.full || (w.cut && c->q.flags & FILES_RECURSIVE))
		io->end.flags |= FILES_CUT;
	return r ? io_trouble(io, w.path, r) : 0;
}
