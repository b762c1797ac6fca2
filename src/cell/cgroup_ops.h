/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_ops.h - Inside of the cgroup module: the pure text parsers, and what v1 and v2 do apart.
 *
 * Only cgroup*.c, their unit test and their fuzz target include this.
 */
#ifndef CAISSON_CELL_CGROUP_OPS_H
#define CAISSON_CELL_CGROUP_OPS_H

#include "cell/cgroup.h"

/*
 * A cell's directory is <place>/caisson-<name> on v1 and beside it in a bare v2 tree. Where v2
 * carries the controllers it is <place>/caisson/<name>: the base in between hands the controllers
 * on, and as long as it does the kernel does not let anyone (systemd, which manages the place) take
 * them away from it, and so from the limits of a running cell. v1 has no such danger, and each
 * level costs as much to make as a cell's directory itself.
 */
#define CGROUP_BASE "caisson"
#define CGROUP_FLAT "caisson-"
#define CGROUP_SELF "caisson.self" /* leaf for the processes of a vacated v2 cgroup */

/* The controllers that every cell needs, as a mask of roles, and their names for v2. */
#define CGROUP_BIT(role) (1u << (role))
#define CGROUP_NEED (CGROUP_BIT(CGROUP_MEMORY) | CGROUP_BIT(CGROUP_PIDS) | CGROUP_BIT(CGROUP_CPU))
#define CGROUP_ENABLE "+memory +pids +cpu"

/* A view of text that need not end in NUL. */
struct cgroup_text {
	const char *p;
	size_t n;
};

/* ---- cgroup_parse.c: pure, no I/O, no allocation, any bytes are safe input ---- */

/* Where one role's hierarchy is, and where we are in it. */
struct cgroup_place {
	bool known;     /* /proc/self/cgroup lists it */
	bool mounted;   /* mountinfo lists it, perhaps not in a way that shows our position */
	bool usable;    /* a mount shows our position: mount and pos are set */
	bool read_only; /* that mount is */
	char self[CGROUP_PATH_MAX];  /* our position as the kernel names it; "" when too long */
	char mount[CGROUP_PATH_MAX]; /* mount point */
	char pos[CGROUP_PATH_MAX]; /* our position below it: "" for the mount's root, else "/a/b" */
};

struct cgroup_map {
	struct cgroup_place at[CGROUP_ROLES_];
};

/* cgroup_map_self() - Start a map from the text of /proc/self/cgroup. */
void cgroup_map_self(struct cgroup_map *m, struct cgroup_text t);

/* cgroup_map_mounts() - Add whole lines of /proc/self/mountinfo; may be called for each part. */
void cgroup_map_mounts(struct cgroup_map *m, struct cgroup_text t);

/*
 * cgroup_map_kind() - The kind of cgroups that the texts show for this machine.
 * @ret_missing: the needed roles that stand in the way of a result, when it is CGROUP_NONE.
 * CGROUP_V2 only says that v2 is the candidate: its controllers are not in these texts.
 */
enum cgroup_kind cgroup_map_kind(const struct cgroup_map *m, unsigned int *ret_missing);

/* cgroup_text_mask() - "cpuset cpu io memory" as a mask of the roles it names. */
unsigned int cgroup_text_mask(struct cgroup_text t);

/* cgroup_text_u64() - A whole decimal number, or "max" (UINT64_MAX), with space around it. */
bool cgroup_text_u64(struct cgroup_text t, uint64_t *ret);

/* cgroup_text_key() - The number after @key in "key number" lines. */
bool cgroup_text_key(struct cgroup_text t, const char *key, uint64_t *ret);

/* cgroup_text_pids() - Numbers of cgroup.procs, at most @max; 0 stands for one we cannot see. */
size_t cgroup_text_pids(struct cgroup_text t, pid_t *ret, size_t max);

/* cgroup_text_ppid() - Parent in the text of /proc/PID/stat; 0 when it is not such a text. */
pid_t cgroup_text_ppid(struct cgroup_text t);

/* cgroup_path_removable() - Whether @path is absolute, plain, and ends as a cell's must. */
bool cgroup_path_removable(const char *path);

/* cgroup_role_str() - "memory", "pids", ... */
const char *cgroup_role_str(enum cgroup_role role);

/* cgroup_mask_str() - "memory, pids" into @buf. Return: @buf. */
char *cgroup_mask_str(unsigned int mask, char *buf, size_t size);

/* cgroup_join() - a followed by b into a CGROUP_PATH_MAX buffer; false when it does not fit. */
bool cgroup_join(char *ret, const char *a, const char *b);

/* ---- cgroup.c: shared by v1 and v2 ---- */

/* cgroup_dir() - Descriptor of the directory that has @role, -1 when no directory has it. */
int cgroup_dir(const struct cgroup *c, enum cgroup_role role);

/* cgroup_parent() - The directory above @path, into a CGROUP_PATH_MAX buffer.
 * Return: whether it is a base, which is made and removed with the cells in it. */
bool cgroup_parent(const char *path, char *ret);

/* cgroup_get_u64() - Read a file that holds one number. 0 or -errno (-EPROTO: not a number). */
int cgroup_get_u64(int dirfd, const char *file, uint64_t *ret);

/* cgroup_get_keys() - Read a file once and fill the values of up to n keys; absent keys stay. */
struct cgroup_key {
	const char *key;
	uint64_t *ret;
};
int cgroup_get_keys(int dirfd, const char *file, const struct cgroup_key *keys, size_t n);

/* cgroup_put() - Write formatted text to a file below @dirfd. 0 or -errno. */
int cgroup_put(int dirfd, const char *file, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* cgroup_quota() - Period and quota in microseconds for a share of processors. */
void cgroup_quota(uint32_t cpu_milli, uint64_t *ret_quota_us, uint64_t *ret_period_us);

/* cgroup_quota_milli() - The reverse, rounded to nearest. */
uint32_t cgroup_quota_milli(uint64_t quota_us, uint64_t period_us);

/* ---- operations that differ between the versions ---- */

struct cgroup_ops {
	/* Make the base and let it hand out controllers. NULL: no base to make. Repeatable;
	 * -ENOENT: another process removed it meanwhile. */
	int (*base)(const char *base, struct err *e);
	/* Write limits of new directories. 0 or -errno. memory: also when 0, for "no limit". */
	int (*memory)(const struct cgroup *c, uint64_t bytes);
	int (*quota)(const struct cgroup *c, uint32_t cpu_milli);
	int (*weight)(const struct cgroup *c, uint32_t cpu_weight);
	/* Open oom_fd (or leave it -1 where the Linux kernel offers none) and set group kill. */
	int (*watch)(struct cgroup *c, struct err *e);
	int (*limits_read)(const struct cgroup *c, struct cgroup_limits *ret);
	int (*usage)(const struct cgroup *c, struct cgroup_usage *ret);
	int (*oom_kills)(const struct cgroup *c, uint64_t *ret_kills);
};

extern const struct cgroup_ops cgroup_ops_v1, cgroup_ops_v2;

#endif
