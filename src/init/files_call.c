/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_call.c - From the request of a file call to the function that serves it.
 *
 * Init unpacks the request; the worker, a child that command.c has made a command like any other,
 * serves it and writes its result as frames (files_io.c).
 */
#include "init/files.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files_worker.h"

int files_unpack(const struct init_files *q, const int *fds, size_t n_fds, struct files_call *ret)
{
	size_t at = 0;
	int r = EINVAL;

	*ret = (struct files_call){ .q = *q };
	if (n_fds == 1)
		r = blob_map(&ret->blob, fds[0], q->blob_len);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	if (r)
		return r;
	ret->path = blob_next(&ret->blob, &at);
	ret->to = blob_next(&ret->blob, &at);
	if (!ret->to || at != ret->blob.len || q->op == 0 || q->op >= FILES_OP_MAX_ ||
	    q->flags & ~FILES_FLAGS || q->mode & ~0777u || q->depth > FILES_DEPTH_MAX)
		return EINVAL;
	if (strlen(ret->path) >= FILES_PATH_MAX || strlen(ret->to) >= FILES_PATH_MAX)
		return ENAMETOOLONG;
	return 0;
}

void files_free(struct files_call *c)
{
	blob_unmap(&c->blob);
}

static int (*const calls[])(const struct files_call *c, struct files_io *io) = {
	[FILES_READ] = files_read,   [FILES_WRITE] = files_write,     [FILES_STAT] = files_stat,
	[FILES_LIST] = files_list,   [FILES_MOVE] = files_move,       [FILES_DELETE] = files_delete,
	[FILES_MKDIR] = files_mkdir, [FILES_TAR_OUT] = files_tar_out, [FILES_TAR_IN] = files_tar_in,
	[FILES_WATCH] = files_watch, [FILES_HASH] = files_hash,
};
_Static_assert(ARRAY_SIZE(calls) == FILES_OP_MAX_, "calls[] vs enum files_op");

_Noreturn void files_main(const struct files_call *c)
{
	static struct files_io io;

	/* Both become errors of write(2): the host went away; a file beyond the size limit. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)umask(0);
	int r = calls[c->q.op](c, &io);

	io_end(&io, r);
	_exit(io.broken ? 1 : 0);
}
