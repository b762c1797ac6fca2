/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - Files and directories to and from a sandbox, one copy at a time.
 *
 * Each returns 0, or -1 after s->problem was set. What arrives here is written under another name
 * first and has its own when it is whole; directories are filled as they come.
 */
#ifndef CAISSON_REMOTE_COPY_H
#define CAISSON_REMOTE_COPY_H

#include <jansson.h>
#include <stdint.h>

struct place;
struct session;

/* What the copy did, for --json. */
struct copied {
	uint64_t bytes;   /* of a file, or of the archive of a directory */
	uint64_t skipped; /* entries that are neither file, directory nor harmless link */
};

/* copy_put_file() - A file, or stdin ("-"), to @path of the sandbox @name. */
int copy_put_file(struct session *s, const char *from, const char *name, const char *path,
		  struct copied *ret);
int copy_put_dir(struct session *s, const char *from, const char *name, const char *path,
		 struct copied *ret);

/* copy_get_file() - @path of the sandbox @name to a file, or to stdout ("-"). @mode: permission
 * bits. */
int copy_get_file(struct session *s, const char *name, const char *path, const char *to,
		  unsigned int mode, struct copied *ret);
int copy_get_dir(struct session *s, const char *name, const char *path, const char *to,
		 struct copied *ret);

/* cp_put(), cp_get() - As cp(1) decides under which name; -r is needed for directories. */
int cp_put(struct session *s, const char *from, const struct place *to, struct copied *ret);
int cp_get(struct session *s, const struct place *from, const char *to, struct copied *ret);

/* copy_stat() - What is at @path: a new object, or NULL with s->problem (status 404: nothing). */
json_t *copy_stat(struct session *s, const char *name, const char *path);

#endif
