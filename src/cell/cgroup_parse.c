/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_parse.c - The kernel's cgroup texts, as plain values.
 *
 * Theory of operation: a machine has one unified (v2) tree and any number of v1 hierarchies. Each
 * line of /proc/self/cgroup names one of them and our position in it; each cgroup line of
 * /proc/self/mountinfo shows one of them, or a part of it (the "root" field), at a mount point.
 * Both positions are counted from the root of our cgroup namespace, so the one below the mount
 * point is the first with the second removed in front. A "/.." in either means "outside of the
 * namespace": then names are lost and the mount is of use only if it is a prefix all the same.
 *
 * Nothing here does I/O or allocates, every copy is bounded by CGROUP_PATH_MAX, and what does not
 * fit makes a mount unusable instead of being cut.
 */
#include "cell/cgroup_ops.h"

#include <limits.h>
#include <string.h>

static const char *const role_str[] = {
	[CGROUP_MEMORY] = "memory",   [CGROUP_PIDS] = "pids",       [CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct", [CGROUP_UNIFIED] = "unified",
};
_Static_assert(sizeof(role_str) / sizeof(role_str[0]) == CGROUP_ROLES_, "role_str[] vs enum");

const char *cgroup_role_str(enum cgroup_role role)
{
	return role < CGROUP_ROLES_ ? role_str[role] : "?";
}

/* Cut the text before the next @sep off @rest. False at the end. */
static bool next(struct cgroup_text *rest, char sep, struct cgroup_text *ret)
{
	if (rest->n == 0)
		return false;

	const char *at = memchr(rest->p, sep, rest->n);
	size_t len = at ? (size_t)(at - rest->p) : rest->n;
	size_t skip = at ? len + 1 : len;

	*ret = (struct cgroup_text){ rest->p, len };
	rest->p += skip;
	rest->n -= skip;
	return true;
}

static bool equal(struct cgroup_text t, const char *s)
{
	return t.n == strlen(s) && memcmp(t.p, s, t.n) == 0;
}

static bool starts(struct cgroup_text t, const char *s)
{
	size_t n = strlen(s);

	return t.n >= n && memcmp(t.p, s, n) == 0;
}

static bool copy(char *ret, struct cgroup_text t)
{
	if (t.n >= CGROUP_PATH_MAX || memchr(t.p, '\0', t.n))
		return false;
	(void)memcpy(ret, t.p, t.n);
	ret[t.n] = '\0';
	return true;
}

/* mountinfo writes space, tab, newline and backslash as three octal digits. */
static bool unescape(char *ret, struct cgroup_text t)
{
	size_t len = 0;

	for (size_t i = 0; i < t.n; i++) {
		unsigned int ch = (unsigned char)t.p[i];

		if (ch == '\\') {
			if (t.n - i < 4)
				return false;
			ch = 0;
			for (size_t k = 1; k <= 3; k++) {
				if (t.p[i + k] < '0' || t.p[i + k] > '7')
					return false;
				ch = ch * 8 + (unsigned int)(t.p[i + k] - '0');
			}
			i += 3;
		}
		if (ch == 0 || ch > UCHAR_MAX || len + 1 >= CGROUP_PATH_MAX)
			return false;
		ret[len++] = (char)ch;
	}
	ret[len] = '\0';
	return true;
}

/* The v1 roles in a comma separated list of controllers or mount options. */
static unsigned int roles_v1(struct cgroup_text list)
{
	struct cgroup_text word;
	unsigned int mask = 0;

	while (next(&list, ',', &word))
		for (unsigned int r = 0; r < CGROUP_UNIFIED; r++)
			if (equal(word, role_str[r]))
				mask |= CGROUP_BIT(r);
	return mask;
}

static bool has_dotdot(const char *path)
{
	struct cgroup_text rest = { path, strlen(path) }, word;

	while (next(&rest, '/', &word))
		if (equal(word, ".."))
			return true;
	return false;
}

void cgroup_map_self(struct cgroup_map *m, struct cgroup_text t)
{
	struct cgroup_text line, id, list;

	(void)memset(m, 0, sizeof(*m));
	while (next(&t, '\n', &line)) {
		if (!next(&line, ':', &id) || !next(&line, ':', &list))
			continue;

		unsigned int mask = roles_v1(list);
		/* The rest of the line is the path; it may contain colons. */
		bool plain = starts(line, "/");

		if (equal(id, "0") && list.n == 0)
			mask = CGROUP_BIT(CGROUP_UNIFIED);
		for (unsigned int r = 0; r < CGROUP_ROLES_; r++) {
			struct cgroup_place *at = &m->at[r];

			if (!(mask & CGROUP_BIT(r)) || at->known)
				continue;
			at->known = true;
			if (!plain || !copy(at->self, line))
				at->self[0] = '\0';
		}
	}
}

/* Our position @self as seen below a mount whose root is @root. */
static bool below(const char *root, const char *self, char *ret)
{
	size_t n = strlen(root);

	if (self[0] != '/' || root[0] != '/')
		return false;
	if (n == 1)
		n = 0; /* "/": every position inside of the namespace is below it */
	if (strncmp(self, root, n) != 0 || (self[n] != '\0' && self[n] != '/'))
		return false;
	self += n;
	if (strcmp(self, "/") == 0)
		self++;
	/* The rest must go down only, and must not be a removed cgroup ("/x (deleted)"). */
	size_t len = strlen(self);
	static const char gone[] = " (deleted)";

	if (has_dotdot(self) ||
	    (len >= sizeof(gone) && strcmp(self + len - (sizeof(gone) - 1), gone) == 0))
		return false;
	(void)memcpy(ret, self, len + 1);
	return true;
}

struct mount_line {
	unsigned int roles;
	bool read_only;
	char root[CGROUP_PATH_MAX], point[CGROUP_PATH_MAX];
};

/* "ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER-OPTIONS" */
static bool mount_line(struct cgroup_text line, struct mount_line *ret)
{
	struct cgroup_text root, point, options, word, type, super;

	for (int i = 0; i < 3; i++)
		if (!next(&line, ' ', &word))
			return false;
	if (!next(&line, ' ', &root) || !next(&line, ' ', &point) || !next(&line, ' ', &options))
		return false;
	do {
		if (!next(&line, ' ', &word))
			return false;
	} while (!equal(word, "-"));
	if (!next(&line, ' ', &type) || !next(&line, ' ', &word) || !next(&line, ' ', &super))
		return false;

	if (equal(type, "cgroup2"))
		ret->roles = CGROUP_BIT(CGROUP_UNIFIED);
	else if (equal(type, "cgroup"))
		ret->roles = roles_v1(super);
	else
		return false;
	ret->read_only = equal(options, "ro") || starts(options, "ro,") || equal(super, "ro") ||
			 starts(super, "ro,");
	return ret->roles && unescape(ret->root, root) && unescape(ret->point, point) &&
	       ret->point[0] == '/';
}

/*
 * Of several mounts of one hierarchy a writable one is preferred, and one mounted over another
 * hides it; otherwise the first stays.
 */
static void place(struct cgroup_place *at, const struct mount_line *ml)
{
	char pos[CGROUP_PATH_MAX];

	at->mounted = true;
	if (!at->known || !below(ml->root, at->self, pos))
		return;
	if (at->usable && strcmp(at->mount, ml->point) != 0 && (!at->read_only || ml->read_only))
		return;
	at->usable = true;
	at->read_only = ml->read_only;
	/* A mount at "/" is not absurd (a chroot of its own); joining must not make "//". */
	(void)memcpy(at->mount, ml->point, strlen(ml->point) + 1);
	if (strcmp(at->mount, "/") == 0)
		at->mount[0] = '\0';
	(void)memcpy(at->pos, pos, strlen(pos) + 1);
}

void cgroup_map_mounts(struct cgroup_map *m, struct cgroup_text t)
{
	struct cgroup_text line;
	struct mount_line ml;

	while (next(&t, '\n', &line)) {
		if (!mount_line(line, &ml))
			continue;
		for (unsigned int r = 0; r < CGROUP_ROLES_; r++)
			if (ml.roles & CGROUP_BIT(r))
				place(&m->at[r], &ml);
	}
}

enum cgroup_kind cgroup_map_kind(const struct cgroup_map *m, unsigned int *ret_missing)
{
	unsigned int on_v1 = 0, usable = 0;
	const struct cgroup_place *unified = &m->at[CGROUP_UNIFIED];

	for (unsigned int r = 0; r < CGROUP_UNIFIED; r++) {
		on_v1 |= m->at[r].known ? CGROUP_BIT(r) : 0;
		usable |= m->at[r].usable ? CGROUP_BIT(r) : 0;
	}
	*ret_missing = 0;
	if ((on_v1 & CGROUP_NEED) == 0) {
		if (unified->usable)
			return CGROUP_V2;
		*ret_missing = CGROUP_NEED;
		return CGROUP_NONE;
	}
	*ret_missing = CGROUP_NEED & ~usable;
	if (*ret_missing)
		return CGROUP_NONE;
	return unified->usable ? CGROUP_HYBRID : CGROUP_V1;
}

unsigned int cgroup_text_mask(struct cgroup_text t)
{
	struct cgroup_text line, word;
	unsigned int mask = 0;

	while (next(&t, '\n', &line))
		while (next(&line, ' ', &word))
			mask |= roles_v1(word);
	return mask;
}

static bool is_space(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\n';
}

bool cgroup_text_u64(struct cgroup_text t, uint64_t *ret)
{
	uint64_t v = 0;

	while (t.n > 0 && is_space(t.p[0]))
		t.p++, t.n--;
	while (t.n > 0 && is_space(t.p[t.n - 1]))
		t.n--;
	if (equal(t, "max")) {
		*ret = UINT64_MAX;
		return true;
	}
	for (size_t i = 0; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9' || __builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (unsigned int)(t.p[i] - '0'), &v))
			return false;
	}
	if (t.n == 0)
		return false;
	*ret = v;
	return true;
}

bool cgroup_text_key(struct cgroup_text t, const char *key, uint64_t *ret)
{
	struct cgroup_text line, word;

	while (next(&t, '\n', &line))
		if (next(&line, ' ', &word) && equal(word, key))
			return cgroup_text_u64(line, ret);
	return false;
}

size_t cgroup_text_pids(struct cgroup_text t, pid_t *ret, size_t max)
{
	struct cgroup_text line;
	size_t n = 0;
	uint64_t v;

	while (n < max && next(&t, '\n', &line))
		if (cgroup_text_u64(line, &v) && v <= INT_MAX)
			ret[n++] = (pid_t)v;
	return n;
}

pid_t cgroup_text_ppid(struct cgroup_text t)
{
	struct cgroup_text word;
	uint64_t v;
	size_t i = t.n;

	/* "PID (COMM) STATE PPID ...": the name may hold anything, so look for the last ')'. */
	while (i > 0 && t.p[i - 1] != ')')
		i--;
	t.p += i;
	t.n -= i;
	for (int field = 0; field < 3; field++)
		if (!next(&t, ' ', &word))
			return 0;
	return i > 0 && cgroup_text_u64(word, &v) && v <= INT_MAX ? (pid_t)v : 0;
}

bool cgroup_name_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n < CGROUP_NAME_MAX && name[n] == '\0';
}

bool cgroup_path_removable(const char *path)
{
	struct cgroup_text rest, word, last = { "", 0 }, before = { "", 0 };
	size_t len = strnlen(path, CGROUP_PATH_MAX), depth = 0;

	if (len == CGROUP_PATH_MAX || path[0] != '/' || path[len - 1] == '/')
		return false;
	rest = (struct cgroup_text){ path + 1, len - 1 };
	while (next(&rest, '/', &word)) {
		if (word.n == 0 || equal(word, ".") || equal(word, ".."))
			return false;
		before = last;
		last = word;
		depth++;
	}
	if (depth >= 2 && starts(last, CGROUP_FLAT) &&
	    cgroup_name_valid(last.p + strlen(CGROUP_FLAT)))
		return true;
	return depth >= 2 && equal(before, CGROUP_BASE) && cgroup_name_valid(last.p);
}

char *cgroup_mask_str(unsigned int mask, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned int r = 0; r < CGROUP_ROLES_; r++) {
		const char *sep = len > 0 ? ", " : "";
		size_t need = strlen(sep) + strlen(role_str[r]);

		if (!(mask & CGROUP_BIT(r)) || len + need >= size)
			continue;
		(void)memcpy(buf + len, sep, strlen(sep));
		(void)memcpy(buf + len + strlen(sep), role_str[r], strlen(role_str[r]) + 1);
		len += need;
	}
	return buf;
}

bool cgroup_join(char *ret, const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);

	if (la + lb >= CGROUP_PATH_MAX)
		return false;
	(void)memmove(ret, a, la); /* @a may be @ret: appending in place */
	(void)memcpy(ret + la, b, lb + 1);
	return true;
}
