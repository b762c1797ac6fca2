/* SPDX-License-Identifier: Apache-2.0 */
/* fds.h - Descriptors of a test's own process, counted before and after what must leak none. */
#ifndef TESTS_UNIT_FDS_H
#define TESTS_UNIT_FDS_H

#include <dirent.h>
#include <stdlib.h>

/* How many are open; the one that counts is in every result. */
static inline int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		abort();
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

#endif
