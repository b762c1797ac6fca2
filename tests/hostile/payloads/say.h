/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - One line per attempt: "name result errno NAME". Judges read the world, not these lines.
 */
#ifndef HOSTILE_E_SAY_H
#define HOSTILE_E_SAY_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

static inline long say(const char *name, long result)
{
	int error = result < 0 ? errno : 0;

	(void)printf("%s %ld %d %s\n", name, result < 0 ? -1 : result, error,
		     error ? strerrorname_np(error) : "-");
	(void)fflush(stdout);
	return result;
}

#endif
