/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.h - What is left of a zygote, or of a cell that did not die: its cgroup, and the record
 * of it.
 *
 * A cgroup can not be removed before the last process in it is dead, and how long that takes is up
 * to what was in it: code in a cell may have forked without end. Nobody waits for it. It is killed
 * again and tried again by the loop, later each time, for as long as the warden lives; the record
 * stays meanwhile, so that whatever ends the warden, the next one goes on.
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
 * remains_add() - Take over @record, @cgroup (NULL: there is none), and @lease_fd (-1: none), which
 * is held as long as anything may still run. Tried at once. Without room for them, or memory, the
 * record stays for the next warden.
 */
void remains_add(struct remains_list *l, struct record *record, struct cgroup *cgroup,
		 int lease_fd);

/* remains_full() - Too many do not die: nothing that may add to them should be made. */
bool remains_full(const struct remains_list *l);

/* remains_check() - Try those whose time has come. Returns when to be called next (ns), 0 never. */
uint64_t remains_check(struct remains_list *l, uint64_t now_ns);

/* remains_end() - The last tries, at most @deadline_ms in all; what is left then stays journalled.
 */
void remains_end(struct remains_list *l, unsigned int deadline_ms);

#endif
