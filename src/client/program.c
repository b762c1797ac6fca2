/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - Find a program of ours: a build tree first, then where it was installed. */
#include "client/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

int program_find(const char *name, char *path, size_t size, struct err *e)
{
	size_t len = strlen(name);
	ssize_t n = readlink("/proc/self/exe", path, size - len - 1);

	if (n > 0) {
		path[n] = '\0';
		char *slash = strrchr(path, '/');

		if (slash) {
			memcpy(slash + 1, name, len + 1);
			if (access(path, X_OK) == 0)
				return 0;
		}
	}
	(void)snprintf(path, size, "%s/%s", CAISSON_LIBEXECDIR, name);
	if (access(path, X_OK) == 0)
		return 0;
	return err_say(e, -ENOENT,
		       "%s is neither beside caisson nor in " CAISSON_LIBEXECDIR
		       ": install it (make install)",
		       name);
}
