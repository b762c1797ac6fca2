/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.h - The process: its options, its loop, and the files that every part writes to.
 *
 * Each layer above has a struct of its own that points to the layers below it: struct cells,
 * struct sandboxes, one for each feature, and one for each wire. So a part gets the layers that it
 * stands on, and cannot name the others: no struct leads from here to a part above. main/parts.c
 * makes all of them.
 */
#ifndef CAISSON_FRONT_SUPPORT_DAEMON_H
#define CAISSON_FRONT_SUPPORT_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/support/config.h"
#include "front/support/jail.h"
#include "net/loop.h"

struct daemon {
	struct config config;
	char address[80]; /* config.listen, when that asked for any free port */
	struct loop loop;
	struct ledger *ledger; /* who ran what */
	struct store *store;   /* records of sandboxes, idempotency keys */
	struct jail_report jail;
	int meminfo_fd;   /* /proc/meminfo, opened before the jail */
	size_t files_max; /* how many descriptors we may have */
	size_t conns_max;
	bool draining, failed;           /* the process is ending; it ends with an error */
	uint64_t started_ns, started_ms; /* started_ms: since 1970 */
};

#endif
