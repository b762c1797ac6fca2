/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - A line of `caisson doctor`, and those about a daemon. */
#ifndef CAISSON_CLI_DOCTOR_H
#define CAISSON_CLI_DOCTOR_H

#include <stddef.h>

#include "cli/package_index.h"

#define DOCTOR_DAEMON_MAX 66 /* lines about a daemon: itself, and its MCP servers */

enum grade { GOOD, WEAK, BAD, GRADE_MAX_ };

extern const char *const grade_names[GRADE_MAX_]; /* ok, weak, missing */

struct check {
	char name[80];
	void (*run)(struct check *c);
	enum index_kind kind; /* of check_index() */
	enum grade grade;
	char found[256];
	char fix[512]; /* empty when good */
};

/*
 * doctor_daemon() - The lines about the daemon that a client of this machine would find; none where
 * no daemon answers.
 * @state: of --state; NULL: the default. @ret: DOCTOR_DAEMON_MAX of them.
 */
size_t doctor_daemon(const char *state, struct check *ret);

#endif
