/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - What the verbs of `caisson audit` share. */
#ifndef CAISSON_REMOTE_AUDIT_H
#define CAISSON_REMOTE_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

struct err;

#define AUDIT_EXIT_DAMAGED 1
#define AUDIT_TAIL_MAX 100000u

struct audit_options {
	const char *state;                   /* NULL: the default */
	const char *sandbox, *owner, *event; /* ls: NULL is any */
	const char *since;                   /* ls: as given */
	const char *head;                    /* verify: SEQ:HASH that was noted, or NULL */
	uint64_t tail;                       /* ls: 0 is all */
	uint64_t from;                       /* verify: the first line that must be there */
	bool json;
};

/* Both: @dirfd is the ledger's directory. Return: an exit code, or -errno with @e. */
int audit_ls(const struct audit_options *o, int dirfd, struct err *e);
int audit_verify(const struct audit_options *o, int dirfd, struct err *e);

#endif
