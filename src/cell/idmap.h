/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap.h - The host users behind the users of a cell.
 *
 * With privilege every cell has 65536 host ids of its own, from a part of the id space that nothing
 * else hands out, so two cells never share a user: not for signals, not for quotas, not for files.
 * The slot in the journal chooses them, and a lock that all wardens of the machine see
 * (cell/journal.h). Without privilege only one id can be mapped: the caller's own, as the cell's
 * agent.
 */
#ifndef CAISSON_CELL_IDMAP_H
#define CAISSON_CELL_IDMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define IDMAP_BASE 0x70000000u /* 1879048192 and up: unassigned in systemd's table of id ranges */
#define IDMAP_COUNT 65536u
#define IDMAP_NO_GROUP 0xfffffffdu /* a group that no file has */

struct idmap {
	bool ranged;   /* a range of its own (privileged); otherwise the single caller's id */
	uint32_t base; /* host id of the cell's id 0, when ranged */
	uint32_t self; /* the id in the namespace that stands for the caller's, otherwise */
	uid_t caller_uid;
	gid_t caller_gid;
};

/* idmap_choose() - The map of the cell in @slot, for a warden with these effective ids. */
void idmap_choose(uint32_t slot, struct idmap *ret);

/* idmap_write() - Write the maps of a child that was just cloned into a new user namespace. */
int idmap_write(const struct idmap *m, pid_t child, struct err *e);

/*
 * idmap_userns() - A user namespace descriptor for id-mapped mounts.
 * @uid, @gid: first user and group on the filesystem
 * @to:    host id they shall look like
 * @count: how many
 *
 * Costs one short-lived process. Return: descriptor or -errno.
 */
int idmap_userns(uint32_t uid, uint32_t gid, uint32_t to, uint32_t count, struct err *e);

#endif
