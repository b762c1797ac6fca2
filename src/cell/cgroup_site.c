/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_site.c - Where on this machine cells can be limited, and the one step that may be needed
 * before they can.
 *
 * Theory of operation: cgroup_parse.c turns /proc/self/cgroup and /proc/self/mountinfo into a map
 * of hierarchies; here the directories it names are looked at. Everything is judged by what the
 * kernel will check later (effective access to the directory, to cgroup.procs and
 * cgroup.subtree_control), nothing by trying. Mount points are the machine's own, no caller and no
 * guest can name one.
 *
 * On v2 a cgroup may hand out controllers or hold processes, not both (only the real root may do
 * both). Our own cgroup holds us, so either an ancestor serves, or our own cgroup is vacated: its
 * processes move to a leaf. That changes a tree which somebody manages, hence it is done only where
 * the manager said so (systemd's delegate mark), where the cgroup is a user's own and holds nothing
 * but us and our ancestors, or where we see nothing above it (a container's own tree).
 */
#include "cell/cgroup_ops.h"

#include "base/err.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FIX_WITHOUT "give up whole-cell limits with '--without cgroup'"
#define FIX_READ_ONLY                                                                              \
	"mounted read-only, so memory, pids and cpu cannot be limited: in a container, run as "    \
	"root with CAP_SYS_ADMIN (docker: --cap-add SYS_ADMIN), or " FIX_WITHOUT

static int read_map(struct cgroup_map *m, struct err *e)
{
	char buf[16384];
	ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/cgroup", buf, sizeof(buf));
	size_t have = 0;

	if (n < 0)
		return err_set(e, (int)n, "read /proc/self/cgroup");
	cgroup_map_self(m, (struct cgroup_text){ buf, (size_t)n });

	_fd_ int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open /proc/self/mountinfo");
	/* Whole lines at a time, in bounded memory: a host can have thousands of mounts. */
	while ((n = TEMP_FAILURE_RETRY(read(fd, buf + have, sizeof(buf) - have))) != 0) {
		if (n < 0)
			return err_set(e, -errno, "read /proc/self/mountinfo");
		have += (size_t)n;

		char *end = memrchr(buf, '\n', have);
		size_t whole = end ? (size_t)(end - buf) + 1 : 0;

		if (whole == 0 && have == sizeof(buf))
			whole = have; /* too long for a cgroup's line: its pieces do not parse */
		cgroup_map_mounts(m, (struct cgroup_text){ buf, whole });
		have -= whole;
		(void)memmove(buf, buf + whole, have);
	}
	return 0;
}

/* A directory on a cgroup filesystem of this version (something else may be mounted over it). */
static int open_cgroup(const char *path, bool v2)
{
	_fd_ int fd = open(path[0] ? path : "/", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statfs st;

	if (fd < 0 || fstatfs(fd, &st) < 0)
		return -errno;
	if ((unsigned long)st.f_type !=
	    (v2 ? (unsigned long)CGROUP2_SUPER_MAGIC : (unsigned long)CGROUP_SUPER_MAGIC))
		return -ENOTTY;
	return TAKE_FD(fd);
}

static bool may(int dirfd, const char *file, int mode)
{
	return faccessat(dirfd, file, mode, AT_EACCESS) == 0;
}

static int site_add(struct cgroup_site *s, enum cgroup_role role, const char *dir, const char *end,
		    struct err *e)
{
	char prefix[CGROUP_PATH_MAX];

	if (!cgroup_join(prefix, dir, end))
		return err_say(e, -ENAMETOOLONG, "cgroup path '%.200s...' is too long", dir);
	for (size_t i = 0; i < s->n_dirs; i++)
		if (strcmp(s->prefix[i], prefix) == 0) {
			s->dir_of[role] = (int8_t)i;
			return 0;
		}
	if (s->n_dirs == CGROUP_DIRS_MAX)
		return err_say(e, -E2BIG, "too many cgroup hierarchies");
	(void)memcpy(s->prefix[s->n_dirs], prefix, sizeof(prefix));
	s->dir_of[role] = (int8_t)s->n_dirs++;
	return 0;
}

/* Whether cells can be made at our position in a hierarchy where nothing need be handed out. */
static int check_flat(const struct cgroup_place *at, char *ret_dir, bool v2)
{
	if (!at->usable || !cgroup_join(ret_dir, at->mount, at->pos))
		return -ENOENT;

	_fd_ int fd = open_cgroup(ret_dir, v2);

	if (fd < 0)
		return fd;
	return may(fd, ".", W_OK | X_OK) ? 0 : -errno;
}

static int find_v1(const struct cgroup_map *m, struct cgroup_site *s, struct err *e)
{
	static const uint8_t need[] = { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU };
	char dir[CGROUP_PATH_MAX], missing[64];
	unsigned int bad = 0;
	int why = 0;

	for (size_t i = 0; i < ARRAY_SIZE(need); i++) {
		int r = check_flat(&m->at[need[i]], dir, false);

		if (r < 0) {
			bad |= CGROUP_BIT(need[i]);
			why = r;
		} else if (site_add(s, need[i], dir, "/" CGROUP_FLAT, e) < 0) {
			return -ENAMETOOLONG;
		}
	}
	if (why == -EROFS)
		return err_say(e, why, "cgroup v1: the hierarchies are " FIX_READ_ONLY);
	if (bad)
		return err_say(e, why,
			       "cgroup v1: %s cannot be used by uid %u (%s; v1 is not delegated to "
			       "users): run as root, or boot with "
			       "'systemd.unified_cgroup_hierarchy=1', or " FIX_WITHOUT,
			       cgroup_mask_str(bad, missing, sizeof(missing)),
			       (unsigned int)geteuid(), strerror(-why));

	s->kind = CGROUP_V1;
	if (check_flat(&m->at[CGROUP_UNIFIED], dir, true) == 0) {
		s->kind = CGROUP_HYBRID;
		if (site_add(s, CGROUP_UNIFIED, dir, "/" CGROUP_FLAT, e) < 0)
			return -ENAMETOOLONG;
	}
	/* Even a bare v2 tree counts processor time, but a zygote's kernels are not in it. */
	if (check_flat(&m->at[CGROUP_CPUACCT], dir, false) == 0)
		return site_add(s, CGROUP_CPUACCT, dir, "/" CGROUP_FLAT, e);
	return 0; /* without it a v2 tree counts, or cpu time is not known from cgroups */
}

/* The possibilities that a v2 cgroup offers. */
struct level {
	unsigned int have; /* controllers it got */
	bool ready;        /* hands them out already, or will when asked */
	bool vacate;       /* would, if it had no processes */
	bool writable;
};

static void look(int fd, struct level *l)
{
	char buf[512];
	unsigned int given = 0;
	ssize_t n = fd_read_file(fd, "cgroup.controllers", buf, sizeof(buf));

	(void)memset(l, 0, sizeof(*l));
	if (n >= 0)
		l->have = cgroup_text_mask((struct cgroup_text){ buf, (size_t)n });
	/* Moving a process below needs cgroup.procs of the common ancestor as well. */
	l->writable = may(fd, ".", W_OK | X_OK) && may(fd, "cgroup.procs", W_OK);
	if (!l->writable || (l->have & CGROUP_NEED) != CGROUP_NEED)
		return;
	n = fd_read_file(fd, "cgroup.subtree_control", buf, sizeof(buf));
	if (n >= 0)
		given = cgroup_text_mask((struct cgroup_text){ buf, (size_t)n });
	if ((given & CGROUP_NEED) == CGROUP_NEED) {
		l->ready = true;
		return;
	}
	if (!may(fd, "cgroup.subtree_control", W_OK))
		return;

	/* The real root has no cgroup.events, and no rule against processes. */
	bool root = faccessat(fd, "cgroup.events", F_OK, 0) < 0 && errno == ENOENT;

	/* More than fits in a small buffer is not empty either. */
	l->ready = root || fd_read_file(fd, "cgroup.procs", buf, sizeof(buf)) == 0;
	l->vacate = !l->ready;
}

/* All processes in it are this one and its ancestors: what a scope made for one command holds. */
static bool only_kin(int fd)
{
	char buf[1024], path[32];
	pid_t there[64] = { 0 }, kin[64] = { 0 };
	ssize_t n = fd_read_file(fd, "cgroup.procs", buf, sizeof(buf));
	size_t n_kin = 0;

	if (n <= 0)
		return false;

	size_t n_there = cgroup_text_pids((struct cgroup_text){ buf, (size_t)n }, there, 64);

	for (pid_t p = getpid(); p > 0 && n_kin < ARRAY_SIZE(kin); n_kin++) {
		kin[n_kin] = p;
		(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)p);
		n = fd_read_file(AT_FDCWD, path, buf, sizeof(buf));
		p = n > 0 ? cgroup_text_ppid((struct cgroup_text){ buf, (size_t)n }) : 0;
	}
	for (size_t i = 0; i < n_there; i++) {
		bool known = false;

		for (size_t k = 0; k < n_kin && !known; k++)
			known = kin[k] == there[i];
		if (!known)
			return false;
	}
	return n_there < ARRAY_SIZE(there);
}

static bool delegated(const char *dir, int fd)
{
	/* systemd marks what it delegates; the trusted one is older, and only root can see it. */
	static const char *const mark[] = { "user.delegate", "trusted.delegate" };
	char value[4];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(mark); i++)
		if (getxattr(dir, mark[i], value, sizeof(value)) == 1 && value[0] == '1')
			return true;
	return geteuid() != 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && only_kin(fd);
}

static int refuse_v2(const struct cgroup_place *at, unsigned int have, struct err *e)
{
	char missing[64];
	unsigned int lack = CGROUP_NEED & ~have;

	if (at->read_only)
		return err_say(e, -EROFS, "cgroup v2: %s is " FIX_READ_ONLY, at->mount);
	if (geteuid() == 0)
		return err_say(
			e, -EOPNOTSUPP,
			"cgroup v2: %s not available at %s%s or above: enable them (parent's "
			"cgroup.subtree_control; kernel command line cgroup_enable=memory; "
			"systemd Delegate=yes), or " FIX_WITHOUT,
			cgroup_mask_str(lack ? lack : CGROUP_NEED, missing, sizeof(missing)),
			at->mount, at->pos);
	return err_say(
		e, -EACCES,
		"cgroup v2: %s not delegated to uid %u at %s%s: start with 'systemd-run --user "
		"--scope -p Delegate=yes caisson ...', or run as root, or " FIX_WITHOUT,
		cgroup_mask_str(lack ? lack : CGROUP_NEED, missing, sizeof(missing)),
		(unsigned int)geteuid(), at->mount, at->pos);
}

static int use_v2(struct cgroup_site *s, const char *dir, bool vacate, struct err *e)
{
	static const uint8_t roles[] = { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_UNIFIED };

	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (site_add(s, roles[i], dir, "/" CGROUP_BASE "/", e) < 0)
			return -ENAMETOOLONG;
	if (vacate && !cgroup_join(s->vacate, dir, ""))
		return err_say(e, -ENAMETOOLONG, "cgroup path is too long");
	s->kind = CGROUP_V2;
	return 0;
}

static int find_v2(const struct cgroup_map *m, struct cgroup_site *s, struct err *e)
{
	const struct cgroup_place *at = &m->at[CGROUP_UNIFIED];
	char pos[CGROUP_PATH_MAX], dir[CGROUP_PATH_MAX];
	unsigned int have = 0; /* controllers within reach: of the nearest cgroup we may write to */
	bool first = true;

	(void)memcpy(pos, at->pos, sizeof(pos));
	/* An earlier caisson vacated the parent of this leaf for us. */
	char *last = strrchr(pos, '/');

	if (last && strcmp(last + 1, CGROUP_SELF) == 0)
		*last = '\0';
	for (;;) {
		struct level l;

		if (!cgroup_join(dir, at->mount, pos))
			return err_say(e, -ENAMETOOLONG, "cgroup path is too long");

		_fd_ int fd = open_cgroup(dir, true);

		if (fd < 0)
			return err_set(e, fd, "open cgroup %s", dir);
		look(fd, &l);
		if (l.writable && have == 0)
			have = l.have;
		last = strrchr(pos, '/');
		if (l.ready)
			return use_v2(s, dir, false, e);
		if (l.vacate && ((first && delegated(dir, fd)) || !last))
			return use_v2(s, dir, true, e);
		if (!last)
			return refuse_v2(at, have, e);
		*last = '\0';
		first = false;
	}
}

static int refuse_map(const struct cgroup_map *m, unsigned int missing, struct err *e)
{
	char names[64];

	(void)cgroup_mask_str(missing, names, sizeof(names));
	for (unsigned int r = 0; r < CGROUP_ROLES_; r++) {
		const struct cgroup_place *at = &m->at[r];

		if (at->known && !at->mounted && (missing & CGROUP_BIT(r)))
			return err_say(
				e, -ENOENT,
				"cgroup controller %s is bound to a v1 hierarchy that is not "
				"mounted: mount it (mount -t cgroup -o %s cgroup DIR), "
				"or " FIX_WITHOUT,
				cgroup_role_str(r), cgroup_role_str(r));
		if (at->known && at->mounted && !at->usable)
			return err_say(
				e, -ENOENT,
				"no mount of the %s cgroup hierarchy shows our own cgroup '%s' "
				"(cgroup namespace): mount it again inside of the namespace, "
				"or " FIX_WITHOUT,
				cgroup_role_str(r), at->self);
	}
	if (m->at[CGROUP_UNIFIED].known && !m->at[CGROUP_UNIFIED].mounted && missing == CGROUP_NEED)
		return err_say(e, -ENOENT,
			       "no cgroup filesystem is mounted (%s): mount -t cgroup2 cgroup2 "
			       "/sys/fs/cgroup, or " FIX_WITHOUT,
			       names);
	return err_say(
		e, -EOPNOTSUPP,
		"cgroup controllers not available to v1 where others are: %s: enable them in the "
		"kernel, or boot with 'systemd.unified_cgroup_hierarchy=1', or " FIX_WITHOUT,
		names);
}

int cgroup_site_find(struct cgroup_site *ret, struct err *e)
{
	struct cgroup_map m;
	unsigned int missing;
	int r;

	(void)memset(ret, 0, sizeof(*ret));
	(void)memset(ret->dir_of, -1, sizeof(ret->dir_of));
	r = read_map(&m, e);
	if (r < 0)
		return r;
	switch (cgroup_map_kind(&m, &missing)) {
	case CGROUP_V2:
		r = find_v2(&m, ret, e);
		break;
	case CGROUP_V1:
	case CGROUP_HYBRID:
		r = find_v1(&m, ret, e);
		break;
	default:
		r = refuse_map(&m, missing, e);
		break;
	}
	if (r < 0)
		ret->kind = CGROUP_NONE;
	return r;
}

/* ---- in a container ------------------------------------------------------------------------ */

bool cgroup_site_is_machine(void)
{
	struct cgroup_map m;
	unsigned int missing;
	const struct cgroup_place *at = &m.at[CGROUP_UNIFIED];

	if (read_map(&m, NULL) < 0 || cgroup_map_kind(&m, &missing) != CGROUP_V2 || !at->usable ||
	    !at->pos[0])
		return false;
	_fd_ int fd = open_cgroup(at->mount, true);

	/* Only the real root has no such file. */
	return fd >= 0 && faccessat(fd, "cgroup.events", F_OK, 0) < 0 && errno == ENOENT;
}

/* Read-only, and begins at our own cgroup. An earlier caisson may have moved us to a leaf. */
static bool is_locked(const struct cgroup_place *at)
{
	return at->usable && at->read_only &&
	       (!at->pos[0] || strcmp(at->pos, "/" CGROUP_SELF) == 0);
}

bool cgroup_site_is_locked(void)
{
	struct cgroup_map m;
	bool found = false;

	if (read_map(&m, NULL) < 0)
		return false;
	for (unsigned int r = 0; r < CGROUP_ROLES_; r++)
		found |= is_locked(&m.at[r]);
	return found;
}

void cgroup_site_unlock(void)
{
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	struct cgroup_map m;

	if (read_map(&m, NULL) < 0)
		return;
	for (unsigned int r = 0; r < CGROUP_ROLES_; r++)
		if (is_locked(&m.at[r]))
			(void)mount_setattr(AT_FDCWD, m.at[r].mount, 0, &writable,
					    sizeof(writable));
}

/* ---- making it ready ----------------------------------------------------------------------- */

/* Move what is in @fd now to @leaf. Return: how many there were, or -errno. */
static int move_all(int fd, int leaf, struct err *e)
{
	char buf[4096];
	pid_t pids[512] = { 0 };
	_fd_ int procs = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	/* One read is enough: what did not fit is there in the next round. */
	ssize_t n = procs < 0 ? -1 : read(procs, buf, sizeof(buf));

	if (n < 0)
		return err_set(e, -errno, "read cgroup.procs");

	/* A last line that was cut would name another process. */
	while (n > 0 && buf[n - 1] != '\n')
		n--;

	size_t count =
		cgroup_text_pids((struct cgroup_text){ buf, (size_t)n }, pids, ARRAY_SIZE(pids));

	for (size_t i = 0; i < count; i++) {
		int r = pids[i] == 0 ? -EBUSY :
				       cgroup_put(leaf, "cgroup.procs", "%d", (int)pids[i]);

		if (r == -EBUSY && pids[i] == 0)
			return err_say(e, r, "it holds a process of another pid namespace");
		if (r < 0 && r != -ESRCH)
			return err_set(e, r, "move process %d", (int)pids[i]);
	}
	return (int)count;
}

int cgroup_site_prepare(struct cgroup_site *s, struct err *e)
{
	if (s->kind != CGROUP_V2 || s->vacate[0] == '\0')
		return 0;

	_fd_ int fd = open_cgroup(s->vacate, true);

	if (fd < 0)
		return err_set(e, fd, "open cgroup %s", s->vacate);
	if (mkdirat(fd, CGROUP_SELF, 0755) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir %s/" CGROUP_SELF, s->vacate);

	_fd_ int leaf = openat(fd, CGROUP_SELF, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = -EBUSY;

	if (leaf < 0)
		return err_set(e, -errno, "open %s/" CGROUP_SELF, s->vacate);
	/* Processes may fork while we move them: repeat, but not for ever. */
	for (int round = 0; round < 64 && r == -EBUSY; round++) {
		r = move_all(fd, leaf, e);
		if (r < 0)
			return err_wrap(e, "vacate cgroup %s", s->vacate);
		r = cgroup_put(fd, "cgroup.subtree_control", CGROUP_ENABLE);
	}
	if (r < 0)
		return err_set(e, r, "hand out " CGROUP_ENABLE " in cgroup %s", s->vacate);
	s->vacate[0] = '\0';
	return 0;
}
