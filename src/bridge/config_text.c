/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_text.c - Rules about texts of a configuration: variables in them, identifiers made of
 * names, whether an entry is this daemon itself, and which key a misspelt one resembles; and the
 * files in which other hosts keep theirs.
 *
 * Those are read on explicit request: they name programs that are then started. The first file that
 * has a name wins, those of the project before those of the home directory. A host's comments in
 * JSON are not understood; such a file is noted and passed over.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "bridge/config.h"
#include "mcp/search_words.h"

#define TEXT_MAX (1u << 20)

/* ---- ${...} -------------------------------------------------------------------------------- */

/* @name: what is between the braces. */
static int expand_one(const char *name, size_t len, const char *(*variable)(const char *),
		      struct buf *out, struct err *e)
{
	_mem_ char *key = strndup(name, len);
	const char *skip = "env:";
	char *standard = key ? strstr(key, ":-") : NULL;

	if (!key)
		return err_set(e, -ENOMEM, "expand");
	if (standard) {
		*standard = '\0';
		standard += 2;
	}
	const char *real = strncmp(key, skip, strlen(skip)) == 0 ? key + strlen(skip) : key;

	if (!real[0] ||
	    strspn(real, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
		    strlen(real))
		return err_say(e, -EINVAL,
			       "${%.80s} is not known here; there are ${NAME}, ${env:NAME} and "
			       "${NAME:-default}",
			       key);
	const char *v = variable(real);

	if (!v)
		v = standard;
	if (!v)
		return err_say(e, -EINVAL, "the variable %.80s of ${%.80s} is not set", real, key);
	return buf_puts(out, v) < 0 ? err_say(e, -EINVAL, "is too long") : 0;
}

char *bridge_expand(const char *s, const char *(*variable)(const char *), struct err *e)
{
	_buf_ struct buf out = BUF_INIT(TEXT_MAX);

	while (*s) {
		const char *begin = strstr(s, "${");
		const char *end = begin ? strchr(begin, '}') : NULL;

		if (!end) {
			(void)buf_puts(&out, s);
			break;
		}
		(void)buf_append(&out, s, (size_t)(begin - s));
		if (expand_one(begin + 2, (size_t)(end - begin) - 2, variable, &out, e) < 0)
			return NULL;
		s = end + 1;
	}
	char *text = out.err ? NULL : strdup(buf_str(&out));

	if (!text)
		(void)err_say(e, -EINVAL, "is too long");
	return text;
}

/* ---- aliases ------------------------------------------------------------------------------- */

static bool is_keyword(const char *s)
{
	/* Of Python and of JavaScript, and names that the runtime has beside servers. */
	static const char *const words[] = {
		"False",      "None",   "True",     "and",    "as",      "assert", "async",
		"await",      "break",  "case",     "catch",  "class",   "const",  "continue",
		"debugger",   "def",    "default",  "del",    "delete",  "do",     "elif",
		"else",       "enum",   "except",   "export", "extends", "false",  "finally",
		"for",        "from",   "function", "global", "if",      "import", "in",
		"instanceof", "is",     "lambda",   "let",    "match",   "new",    "nonlocal",
		"not",        "null",   "or",       "pass",   "raise",   "return", "static",
		"super",      "switch", "this",     "throw",  "true",    "try",    "type",
		"typeof",     "var",    "void",     "while",  "with",    "yield",  "runtime",
		"servers",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(s, words[i]) == 0)
			return true;
	return false;
}

void bridge_alias(const char *name, bool (*taken)(const void *arg, const char *alias),
		  const void *arg, char *ret, size_t size)
{
	char base[64];
	size_t n = 0;

	if (name[0] >= '0' && name[0] <= '9')
		base[n++] = '_';
	for (; *name && n < sizeof(base) - 2; name++) {
		bool good = isalnum((unsigned char)*name); /* of ASCII: the locale is "C" */

		/* Bytes of one character that is not ASCII are one mark. */
		if (!good && n > 0 && base[n - 1] == '_' && ((unsigned char)*name & 0xc0) == 0x80)
			continue;
		base[n++] = good ? *name : '_';
	}
	base[n] = '\0';
	if (n == 0 || strspn(base, "_") == n)
		(void)snprintf(base, sizeof(base), "server");
	else if (is_keyword(base))
		memcpy(base + n, "_", 2);
	(void)snprintf(ret, size, "%s", base);
	for (unsigned int i = 2; taken(arg, ret); i++)
		(void)snprintf(ret, size, "%s_%u", base, i);
}

/* ---- ourselves ----------------------------------------------------------------------------- */

/* `caisson mcp`, also behind env, sudo or a shell's -c. */
static bool is_own_command(char *const *argv)
{
	for (size_t i = 0; argv && argv[i]; i++) {
		const char *name = basename(argv[i]);

		bool ours = strcmp(name, "caisson") == 0 || strcmp(name, "caisson-remote") == 0;

		if ((ours && argv[i + 1] && strcmp(argv[i + 1], "mcp") == 0) ||
		    strstr(argv[i], "caisson mcp"))
			return true;
	}
	return false;
}

static bool is_loopback(const char *host, size_t len)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && strncmp(host, names[i], len) == 0)
			return true;
	return false;
}

bool bridge_is_self(const struct server_config *s, const char *const *addresses)
{
	if (s->transport == BRIDGE_STDIO)
		return is_own_command(s->argv);
	const char *host = strstr(s->url, "://") + 3;
	size_t len = strcspn(host, "/?#");
	const char *at = memchr(host, '@', len);

	if (at) {
		len -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	for (; addresses && *addresses; addresses++) {
		const char *port = strrchr(*addresses, ':'), *theirs = memrchr(host, ':', len);

		if (strlen(*addresses) == len && strncmp(*addresses, host, len) == 0)
			return true;
		/* Names of the same loopback. */
		if (port && theirs && strlen(port) == (size_t)(host + len - theirs) &&
		    strncmp(port, theirs, strlen(port)) == 0 &&
		    is_loopback(*addresses, (size_t)(port - *addresses)) &&
		    is_loopback(host, (size_t)(theirs - host)))
			return true;
	}
	return false;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static const char *const keys[] = { "command",
				    "args",
				    "env",
				    "cwd",
				    "url",
				    "type",
				    "headers",
				    "transport",
				    "disabled",
				    "enabled",
				    "caisson",
				    "description",
				    "startup_timeout_sec",
				    "startup_timeout_ms" };

/* Small letters and digits alone: capitals, '-' and '_' make no difference. */
static void plain(const char *key, struct word *ret)
{
	*ret = (struct word){ 0 };
	for (; *key && ret->len < WORD_MAX; key++)
		if (isalnum((unsigned char)*key))
			ret->text[ret->len++] = (char)tolower((unsigned char)*key);
}

const char *bridge_key_meant(const char *key)
{
	struct word asked, known;
	const char *found = NULL;

	plain(key, &asked);
	unsigned int best = asked.len < 3 ? 0 : asked.len < 6 ? 1 : 2;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(key, keys[i]) == 0)
			return NULL;
		plain(keys[i], &known);
		unsigned int far = word_distance(&asked, asked.len, &known, known.len, best);

		if (far < best || (far == best && !found && best > 0)) {
			best = far;
			found = keys[i];
		}
	}
	return found;
}

/* ---- files of other hosts ------------------------------------------------------------------ */

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

int bridge_read_file(int fd, const char *name, struct buf *ret, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "%s: is not a regular file", name);
	int r = fd_read_buf(fd, ret);

	return r == -EMSGSIZE ? err_say(e, -EFBIG, "%s: is larger than 16 MiB", name) :
	       r < 0          ? err_set(e, r, "%s", name) :
				0;
}

static int add_file(struct bridge_config *c, const char *dir, const char *name, struct err *e)
{
	char path[4096];
	_buf_ struct buf text = BUF_INIT(BRIDGE_FILE_MAX);

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return 0;
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return 0;
	int r = bridge_read_file(fd, path, &text, e);

	if (r == 0)
		r = bridge_config_add(c, path, buf_str(&text), text.len, false, e);
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
