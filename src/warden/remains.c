/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.c - The remains of a zygote, or of a cell that did not die: its cgroup and its record.
 *
 * A cgroup cannot be removed before the last process in it is dead, and how long that takes depends
 * on its processes: code in a cell may have forked without end. The warden does not wait for it.
 * The loop kills and tries again, later each time, for as long as the warden lives; the record
 * stays meanwhile, so that the next warden continues after any end of this one.
 */
#include "warden/warden_cell.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cell/cgroup.h"
#include "cell/journal.h"

#define AGAIN_MIN_NS (1 * CLOCK_NS_PER_MS)
#define AGAIN_MAX_SHIFT 10 /* one second */
#define LAST_STEP_US 500u

struct remains {
	struct remains *next;
	struct record record;
	struct cgroup cgroup;
	int lease_fd;
	uint64_t again_ns;
	unsigned int tries;
};

/* True when nothing is left of it. */
static bool try_one(struct remains *r, uint64_t now_ns)
{
	if (cgroup_try_remove(&r->cgroup, NULL) == 0) {
		record_end(&r->record);
		return true;
	}
	r->again_ns = now_ns + (AGAIN_MIN_NS << r->tries);
	r->tries += r->tries < AGAIN_MAX_SHIFT ? 1 : 0;
	return false;
}

static void unlink_one(struct remains_list *l, struct remains **at)
{
	struct remains *r = *at;

	*at = r->next;
	l->n--;
	fd_close(r->lease_fd);
	free(r);
}

void remains_add(struct remains_list *l, struct record *record, struct cgroup *cgroup, int lease_fd)
{
	if (!cgroup || cgroup_try_remove(cgroup, NULL) == 0) {
		record_end(record);
		fd_close(lease_fd);
		return;
	}
	struct remains *r = l->n < REMAINS_MAX ? calloc(1, sizeof(*r)) : NULL;

	if (!r) {
		cgroup_close(cgroup);
		record_keep(record);
		fd_close(lease_fd);
		return;
	}
	r->record = *record;
	r->cgroup = *cgroup;
	r->lease_fd = lease_fd;
	r->again_ns = clock_now_ns() + AGAIN_MIN_NS;
	r->next = l->first;
	l->first = r;
	l->n++;
	record->fd = -1;
}

bool remains_full(const struct remains_list *l)
{
	return l->n >= REMAINS_MAX / 2; /* the other half is for those that exist already */
}

uint64_t remains_check(struct remains_list *l, uint64_t now_ns)
{
	uint64_t next = 0;

	for (struct remains **at = &l->first; *at;) {
		if (now_ns >= (*at)->again_ns && try_one(*at, now_ns)) {
			unlink_one(l, at);
			continue;
		}
		if (!next || (*at)->again_ns < next)
			next = (*at)->again_ns;
		at = &(*at)->next;
	}
	return next;
}

void remains_end(struct remains_list *l, unsigned int deadline_ms)
{
	uint64_t now = clock_now_ns(), until = now + deadline_ms * CLOCK_NS_PER_MS;

	while (l->first && now < until) {
		for (struct remains **at = &l->first; *at;)
			if (try_one(*at, now))
				unlink_one(l, at);
			else
				at = &(*at)->next;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			; /* no cell and no zygote is left that they could belong to */
		if (l->first)
			(void)usleep(LAST_STEP_US);
		now = clock_now_ns();
	}
	while (l->first) {
		cgroup_close(&l->first->cgroup);
		record_keep(&l->first->record);
		unlink_one(l, &l->first);
	}
}
