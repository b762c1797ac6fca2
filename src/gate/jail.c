/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.c - The gate's jail: it keeps descriptors that it is sent, sockets, and their bytes.
 *
 * The same layers as the front's jail (front/support/jail.c), with another user and another filter:
 * an attacker who takes over the gate cannot reach the front, nor the other way round. Landlock
 * leaves it no file. It may connect TCP, which is its purpose.
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
	int r = landlock_deny_files_but(NULL, 0);

	if (r < 0)
		return err_set(e, r, "enter a Landlock domain");
	if (power_has_filters() &&
	    seccomp_install_program(GATE_FILTER, ARRAY_SIZE(GATE_FILTER), e) < 0)
		return err_wrap(e, "enter the jail");
	return 0;
}
