/* SPDX-License-Identifier: Apache-2.0 */
/* as_user.c - Change the effective user, and change it back. */
#include "cell/as_user.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <unistd.h>

int as_user_begin(uid_t uid)
{
	if (uid == 0)
		return 0;
	if (setresuid((uid_t)-1, uid, (uid_t)-1) < 0)
		return -errno;
	(void)setfsuid(0);
	return 0;
}

void as_user_end(uid_t uid)
{
	int saved = errno;

	if (uid != 0 && setresuid((uid_t)-1, 0, (uid_t)-1) < 0)
		abort();
	errno = saved;
}
