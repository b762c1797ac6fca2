/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - Files of other hosts, on explicit request: they name programs that are then started.
 *
 * The first file that has a name wins, those of the project before those of the home directory. A
 * host's comments in JSON are not understood; such a file is noted and passed over.
 */
#include "bridge/discover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "bridge/config.h"

static const char *const in_project[] = {
	".mcp.json", "mcp.json", ".mcp/mcp.json", ".vscode/mcp.json", ".cursor/mcp.json",
};

static const char *const in_home[] = {
	".config/mcp/mcp.json",
	".claude.json",
	".claude/mcp.json",
	".config/Claude/claude_desktop_config.json",
	"Library/Application Support/Claude/claude_desktop_config.json",
	".cursor/mcp.json",
	".config/Code/User/mcp.json",
	".config/Code - Insiders/User/mcp.json",
	"Library/Application Support/Code/User/mcp.json",
	".codeium/windsurf/mcp_config.json",
	".gemini/settings.json",
	".lmstudio/mcp.json",
};

int bridge_read_file(int fd, const char *name, char **ret, size_t *ret_len, struct err *e)
{
	_buf_ struct buf text = BUF_INIT(BRIDGE_FILE_MAX);
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "%s: is no regular file", name);
	do {
		char *to = buf_reserve(&text, 16384);

		if (!to)
			return err_say(e, -EFBIG, "%s: is larger than 16 MiB", name);
		n = read(fd, to, 16384);
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "%s", name);
		if (n > 0)
			buf_commit(&text, (size_t)n);
	} while (n != 0);
	*ret_len = text.len;
	*ret = text.data ? text.data : strdup("");
	if (text.data)
		text = (struct buf){ .max = BRIDGE_FILE_MAX };
	return *ret ? 0 : err_set(e, -ENOMEM, "%s", name);
}

static int add_file(struct bridge_config *c, const char *dir, const char *name, struct err *e)
{
	char path[4096];
	_mem_ char *text = NULL;
	size_t len;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return 0;
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return 0;
	int r = bridge_read_file(fd, path, &text, &len, e);

	if (r == 0)
		r = bridge_config_add(c, path, text, len, false, e);
	if (r < 0 && r != -ENOMEM && r != -E2BIG) {
		if (c->note)
			c->note(c->arg, e->msg);
		*e = (struct err){ 0 };
		r = 0;
	}
	return r;
}

/* Each file of a directory is one list. */
static int add_directory(struct bridge_config *c, const char *home, const char *name, struct err *e)
{
	char path[4096];
	struct dirent **list = NULL;
	int r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", home, name) >= sizeof(path))
		return 0;
	int n = scandir(path, &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		size_t len = strlen(list[i]->d_name);

		if (r == 0 && len > 5 && strcmp(list[i]->d_name + len - 5, ".json") == 0)
			r = add_file(c, path, list[i]->d_name, e);
		free(list[i]);
	}
	free(list);
	return r;
}

int bridge_discover(struct bridge_config *c, const char *home, const char *cwd, struct err *e)
{
	int r = 0;

	for (size_t i = 0; cwd && r == 0 && i < ARRAY_SIZE(in_project); i++)
		r = add_file(c, cwd, in_project[i], e);
	if (r == 0)
		r = add_directory(c, home, ".config/mcp/servers", e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(in_home); i++)
		r = add_file(c, home, in_home[i], e);
	return r;
}
