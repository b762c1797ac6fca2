/* SPDX-License-Identifier: Apache-2.0 */
/* language.c - The table of languages, and their drivers on disk. */
#include "front/cell/language.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

const struct language languages[LANG_MAX_] = {
	{ LANG_PYTHON, "python", { "py", "python3" }, "python3", { "-I" }, "kernel.pyz" },
	{ LANG_BASH, "bash", { "sh", "shell" }, "bash", { "--norc", "--noprofile" }, "driver.sh" },
	{ LANG_JAVASCRIPT, "javascript", { "js", "node", "nodejs" }, "node", { 0 }, "driver.js" },
	{ LANG_R, "r", { "rscript" }, "Rscript", { "--vanilla" }, "driver.R" },
};

const struct language *language_find(const char *name)
{
	for (size_t i = 0; i < LANG_MAX_; i++) {
		const struct language *l = &languages[i];

		if (strcasecmp(l->name, name) == 0)
			return l;
		for (size_t k = 0; k < ARRAY_SIZE(l->aliases) && l->aliases[k]; k++)
			if (strcasecmp(l->aliases[k], name) == 0)
				return l;
	}
	return NULL;
}

/* The directory is beside this executable in a build tree, and in libexecdir when installed. */
static int open_guest_dir(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - sizeof("guest"));

	if (n > 0) {
		path[n] = '\0';
		char *slash = strrchr(path, '/');

		if (slash) {
			memcpy(slash + 1, "guest", sizeof("guest"));
			int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

			if (fd >= 0)
				return fd;
		}
	}
	(void)snprintf(path, size, "%s/guest", CAISSON_LIBEXECDIR);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int drivers_open(struct drivers *d, struct err *e)
{
	char path[PATH_MAX];
	_fd_ int dir = open_guest_dir(path, sizeof(path));

	memset(d->fd, -1, sizeof(d->fd));
	if (dir < 0)
		return err_set(e, -errno, "open %s (reinstall caisson)", path);
	for (size_t i = 0; i < LANG_MAX_; i++) {
		d->fd[i] = openat(dir, languages[i].driver, O_RDONLY | O_CLOEXEC);
		if (d->fd[i] < 0)
			return err_set(e, -errno, "open %s/%s (reinstall caisson)", path,
				       languages[i].driver);
	}
	return 0;
}
