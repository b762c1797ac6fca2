/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - One rule for every verb. */
#include "client/state.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"

int state_dir(const char *given, const char *runtime, char *path, size_t size, struct err *e)
{
	int n;

	if (given)
		n = snprintf(path, size, "%s", given);
	else if (geteuid() == 0)
		n = snprintf(path, size, "/run/caisson");
	else if (runtime && runtime[0] == '/')
		n = snprintf(path, size, "%s/caisson", runtime);
	else
		n = snprintf(path, size, "/tmp/caisson-%u", (unsigned int)geteuid());
	return n < 0 || (size_t)n >= size ?
		       err_say(e, -ENAMETOOLONG, "--state: the path is too long") :
		       0;
}
