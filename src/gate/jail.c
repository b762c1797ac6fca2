/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.c - What is left to the gate: descriptors it is given, sockets, and their bytes.
 *
 * The same layers as the front's (front/support/jail.c), with another user and another filter:
 * nothing of the front is within reach of one who takes the gate over, and the other way round.
 * Landlock leaves it no file; TCP it may connect, since that is what it is for.
 */
#include "base/err.h"
#include "base/fd.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "cell/seccomp.h"
#include "gate/gate.h"
#include "gate_filter.h"

#define JAIL_USER "caisson-gate"
#define JAIL_ID 0x6ffffffbu /* beside the front's: see front/support/jail.c */

int gate_jail(struct err *e)
{
	struct power_user user;

	if (power_user(JAIL_USER, JAIL_ID, &user, e) < 0 || power_leave(&user, e) < 0 ||
	    power_settle(e) < 0)
		return e->code;
	if (POWER_SANITIZED)
		return 0;
	int r = landlock_deny_files();

	if (r < 0)
		return err_set(e, r, "enter a Landlock domain");
	if (power_has_filters() &&
	    seccomp_install_program(GATE_FILTER, ARRAY_SIZE(GATE_FILTER), e) < 0)
		return err_wrap(e, "enter the jail");
	return 0;
}
