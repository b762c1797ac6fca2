/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.h - The remains of a zygote, or of a cell that did not die: its cgroup and its record.
 *
 * A cgroup cannot be removed before the last process in it is dead, and how long that takes depends
 * on its processes: code in a cell may have forked without end. The warden does not wait for it.
 * The loop kills and tries again, later each time, for as long as the warden lives; the record
 * stays meanwhile, so that the next warden continues after any end of this one.
 */
#ifndef CAISSON_WARDEN_REMAINS_H
#define CAISSON_WARDEN_REMAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup;
struct record;

#define REMAINS_MAX 64u

struct remains;

struct remains_list {
	struct remains *first;
	size_t n;
};

/*
 * remains_add() - Take over @record, @cgroup (NULL: none), and @lease_fd (-1: none), which
 * is held as long as anything may still run. Tried at once. Without room for them, or memory, the
 * record stays for the next warden.
 */
void remains_add(struct remains_list *l, struct record *record, struct cgroup *cgroup,
		 int lease_fd);

/* remains_full() - Too many do not die: make nothing that may add to them. */
bool remains_full(const struct remains_list *l);

/* remains_check() - Try those whose time has come. Returns when to call it next (ns); 0: never. */
uint64_t remains_check(struct remains_list *l, uint64_t now_ns);

/* remains_end() - The last tries, for at most @deadline_ms; the journal keeps the others. */
void remains_end(struct remains_list *l, unsigned int deadline_ms);

#endif
