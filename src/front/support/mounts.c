/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.c - --mount of the daemon: parsed, opened, and added to each cell. */
#include "front/support/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/protect.h"
#include "cell/spec.h"

static const struct {
	const char *word;
	uint32_t flags;
} modes[] = {
	{ ":ro", 0 },
	{ ":rw", CELL_MOUNT_RW | CELL_MOUNT_PROTECT },
	{ ":rw-unprotected", CELL_MOUNT_RW },
};

/* From the right, so that the source may have colons. */
int mounts_parse(const char *text, struct cell_mount *ret, size_t *ret_len, struct err *e)
{
	size_t len = strlen(text);

	*ret = (struct cell_mount){ .flags = 0 };
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		size_t n = strlen(modes[i].word);

		if (len > n && memcmp(text + len - n, modes[i].word, n) == 0) {
			ret->flags = modes[i].flags;
			len -= n;
			break;
		}
	}
	const char *colon = memrchr(text, ':', len);
	size_t place = colon ? len - (size_t)(colon + 1 - text) : 0;

	if (!colon || text[0] != '/' || place == 0 || place >= CELL_DST_MAX)
		return err_say(
			e, -EINVAL,
			"must be SOURCE:PLACE, SOURCE:PLACE:rw or SOURCE:PLACE:rw-unprotected, "
			"both absolute, as in /srv/data:/data");
	memcpy(ret->dst, colon + 1, place);
	if (!spec_path_normal(ret->dst, CELL_DST_MAX))
		return err_say(
			e, -EINVAL,
			"'%s': the place in the cell must be an absolute path without '.', '..' "
			"or a trailing slash; a mode after it is ro or rw",
			ret->dst);
	*ret_len = (size_t)(colon - text);
	return 0;
}

const char *const mount_suffix[] = { [MOUNT_ANY] = "", [MOUNT_RO] = ":ro", [MOUNT_RW] = ":rw" };

bool mount_word_parse(const char *text, struct mount_word *ret)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	*ret = (struct mount_word){ .mode = MOUNT_ANY };
	if (colon && strcmp(colon, mount_suffix[MOUNT_RO]) == 0)
		ret->mode = MOUNT_RO;
	else if (colon && strcmp(colon, mount_suffix[MOUNT_RW]) == 0)
		ret->mode = MOUNT_RW;
	else if (colon)
		return false;
	if (len >= CELL_DST_MAX || memchr(text, ':', len)) /* --mount takes no place with a colon */
		return false;
	memcpy(ret->place, text, len);
	return spec_path_normal(ret->place, CELL_DST_MAX);
}

static int open_one(struct mounts *m, const char *text, struct err *e)
{
	char source[4096];
	struct stat st;
	size_t len;

	if (mounts_parse(text, &m->row[m->n], &len, e) < 0)
		return e->code;
	(void)snprintf(source, sizeof(source), "%.*s", (int)len, text);
	_fd_ int fd = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open %s", source);
	if (!S_ISDIR(st.st_mode))
		m->row[m->n].flags &= ~(uint32_t)CELL_MOUNT_PROTECT;
	if (m->row[m->n].flags & CELL_MOUNT_PROTECT && protect_prepare(fd, e) < 0)
		return err_wrap(e, "%s", source);
	m->fd[m->n++] = TAKE_FD(fd);
	return 0;
}

int mounts_open(struct mounts *m, const char *const *texts, const struct cell_spec *spec,
		struct err *e)
{
	struct cell_spec whole = *spec;
	int ignored[MOUNTS_MAX];

	for (; *texts; texts++)
		if (open_one(m, *texts, e) < 0)
			return err_wrap(e, "--mount");
	const struct mount_set all = { .has = (1u << m->n) - 1 };

	(void)mounts_add(m, &all, &whole, ignored);
	return spec_check(&whole, e);
}

size_t mounts_add(const struct mounts *m, const struct mount_set *set, struct cell_spec *spec,
		  int *fds)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (!(set->has & 1u << i))
			continue;
		struct cell_mount *to = &spec->mounts[spec->n_mounts++];

		*to = m->row[i];
		if (set->ro & 1u << i)
			to->flags = 0;
		fds[n++] = m->fd[i];
	}
	return n;
}

bool mount_set_equal(const struct mount_set *a, const struct mount_set *b)
{
	return a->has == b->has && a->ro == b->ro;
}
