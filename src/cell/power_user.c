/* SPDX-License-Identifier: Apache-2.0 */
/* power_user.c - Look up the user of a service. Apart from power.c, because programs that are
 * linked statically cannot look up users. */
#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#include "base/err.h"
#include "cell/power.h"

int power_user(const char *name, uid_t id, struct power_user *ret, struct err *e)
{
	const struct passwd *pw;

	*ret = (struct power_user){ .name = name };
	if (geteuid() != 0 && getuid() != 0)
		return 0;
	pw = getpwnam(name);
	if (pw && (pw->pw_uid == 0 || pw->pw_gid == 0))
		return err_say(e, -EINVAL,
			       "the user '%s' has uid %u and gid %u; give it ids that are not "
			       "root's, or remove it",
			       name, pw->pw_uid, pw->pw_gid);
	ret->uid = pw ? pw->pw_uid : id;
	ret->gid = pw ? pw->pw_gid : id;
	return 0;
}
