/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_lookup.c - Names in layers, without mounting them.
 *
 * The uppermost layer that has a name decides, also by a whiteout, which removes the name. A link
 * that leads into another layer counts as the program that it stands for.
 */
#include "image_opener/layer_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"

#define PASSWD_MAX (1u << 20)
#define ID_MAX 65535u

static int open_in(int layer, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};

	return (int)syscall(SYS_openat2, layer, path, &how, sizeof(how));
}

/* 1: the file is there; 0: this layer has a whiteout for it; -1: neither. */
static int look(int layer, const char *path)
{
	struct stat st;
	_fd_ int fd = open_in(layer, path, O_PATH | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISCHR(st.st_mode))
		return 0;
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 1 : -1;
}

static bool is_at(const int *layers, size_t n, const char *full)
{
	int there = -1;

	for (size_t i = 0; i < n && there < 0; i++)
		there = look(layers[i], full);
	return there > 0;
}

bool layer_lookup_has(const int *layers, size_t n, const char *path, const char *name)
{
	char full[512];

	if (name[0] == '/')
		return is_at(layers, n, name);
	for (; *path; path += *path == ':') {
		size_t len = strcspn(path, ":");

		if (len + 1 + strlen(name) < sizeof(full)) {
			memcpy(full, path, len);
			full[len] = '/';
			memcpy(full + len + 1, name, strlen(name) + 1);
			if (is_at(layers, n, full))
				return true;
		}
		path += len;
	}
	return false;
}

/* The uppermost file of that name. Its text is the caller's to free; NULL: none that can
 * be read. */
static char *read_file(const int *layers, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		struct stat st;
		_fd_ int fd = open_in(layers[i], path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

		if (fd < 0)
			continue;
		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			return NULL;
		return fd_read_whole(fd, PASSWD_MAX, NULL);
	}
	return NULL;
}

/* Field @k of a line "a:b:c", as a number that an image may have. */
static bool number_at(const char *line, size_t end, unsigned int k, uint32_t *ret)
{
	const char *p = line, *stop = line + end;
	char digits[12];
	uint64_t v;

	while (k > 0 && p < stop)
		if (*p++ == ':')
			k--;
	size_t len = k == 0 ? strcspn(p, ":\n") : 0;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, p, len);
	digits[len] = '\0';
	if (num_parse_u64(digits, 0, ID_MAX, &v, NULL) < 0)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* The line of /etc/passwd or /etc/group whose name is @name. */
static const char *find_line(const char *text, const char *name, size_t len, size_t *ret_end)
{
	while (text && *text) {
		size_t end = strcspn(text, "\n");

		if (end > len && text[len] == ':' && strncmp(text, name, len) == 0) {
			*ret_end = end;
			return text;
		}
		text += end + (text[end] == '\n');
	}
	return NULL;
}

static bool is_number(const char *s, size_t len, uint32_t *ret)
{
	return len > 0 && strspn(s, "0123456789") >= len && number_at(s, len, 0, ret);
}

int layer_lookup_user(const int *layers, size_t n, const char *user, uint32_t *uid, uint32_t *gid,
		      struct err *e)
{
	size_t len = strcspn(user, ":"), end = 0;
	const char *group = user[len] == ':' ? user + len + 1 : "";
	_mem_ char *users = NULL;
	_mem_ char *groups = NULL;

	*uid = *gid = 0;
	if (len > 0 && !is_number(user, len, uid)) {
		users = read_file(layers, n, "etc/passwd");
		const char *line = find_line(users, user, len, &end);

		if (!line || !number_at(line, end, 2, uid) || !number_at(line, end, 3, gid))
			return err_say(e, -EINVAL,
				       "the image wants to run as '%.64s', and has no such user",
				       user);
	} else {
		*gid = *uid;
	}
	if (*group && !is_number(group, strlen(group), gid)) {
		groups = read_file(layers, n, "etc/group");
		const char *line = find_line(groups, group, strlen(group), &end);

		if (!line || !number_at(line, end, 2, gid))
			return err_say(e, -EINVAL,
				       "the image wants to run as '%.64s', and has no such group",
				       user);
	}
	return 0;
}
