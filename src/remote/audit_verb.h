/* SPDX-License-Identifier: Apache-2.0 */
/* audit_verb.h - Options and progress that the verbs of `caisson audit` share. */
#ifndef CAISSON_REMOTE_AUDIT_VERB_H
#define CAISSON_REMOTE_AUDIT_VERB_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct meter;
struct reader_report;

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

/* audit_ls() - @dirfd is the ledger's directory. Return: an exit code, or -errno with @e. */
int audit_ls(const struct audit_options *o, int dirfd, struct err *e);

/* audit_progress() - Show how much of the ledger has been read. */
void audit_progress(struct meter *m, const struct reader_report *so_far);

#endif
