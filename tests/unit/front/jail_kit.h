/* SPDX-License-Identifier: Apache-2.0 */
/* jail_kit.h - Enter the jail in the child of a test; see ../child.h. */
#ifndef CAISSON_TESTS_JAIL_KIT_H
#define CAISSON_TESTS_JAIL_KIT_H

#include "../child.h"

#include "base/err.h"
#include "front/support/jail.h"

static inline struct jail_report enter_jail_with(int ledger_dir)
{
	struct jail_report r = { 0 };
	struct err e = { 0 };

	if (jail_enter(ledger_dir, &r, &e) < 0) {
		(void)fprintf(stderr, "jail_enter: %s\n", e.msg);
		_exit(CHILD_FAILED);
	}
	return r;
}

static inline struct jail_report enter_jail(void)
{
	return enter_jail_with(-1);
}

/* For what only the filter refuses. */
static inline void enter_filtered_jail(void)
{
	if (!enter_jail().seccomp)
		CHILD_SKIP("no filter: a build with sanitizers, or a kernel without seccomp");
}

#endif
