/* SPDX-License-Identifier: Apache-2.0 */
/* lang.c - The table of languages, and where the code of a run comes from. */
#include "cli/lang.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

static const struct lang langs[] = {
	/* -u: output is passed on when it is printed, not when a buffer is full. */
	{ "python", ".py", { "python3", "-u", "-c" }, NULL, { "python3", "-u" } },
	{ "bash", ".sh", { "bash", "-c" }, "bash", { "bash" } },
	{ "javascript", ".js", { "node", "-e" }, "--", { "node" } },
	{ "r", ".r", { "Rscript", "-e" }, NULL, { "Rscript" } },
};

static const struct {
	const char *alias, *name;
} aliases[] = {
	{ "py", "python" },     { "python3", "python" },  { "sh", "bash" }, { "shell", "bash" },
	{ "js", "javascript" }, { "node", "javascript" }, { "R", "r" },
};

/* Files of these would fail as python, with a message about their first line. */
static const struct {
	const char *suffix, *language;
} foreign[] = {
	{ ".rb", "Ruby" },    { ".go", "Go" },
	{ ".rs", "Rust" },    { ".java", "Java" },
	{ ".c", "C" },        { ".cc", "C++" },
	{ ".cpp", "C++" },    { ".cs", "C#" },
	{ ".pl", "Perl" },    { ".php", "PHP" },
	{ ".lua", "Lua" },    { ".ts", "TypeScript" },
	{ ".kt", "Kotlin" },  { ".swift", "Swift" },
	{ ".jl", "Julia" },   { ".scala", "Scala" },
	{ ".hs", "Haskell" }, { ".ps1", "PowerShell" },
	{ ".ex", "Elixir" },  { ".ipynb", "a notebook" },
};

static bool ends_with(const char *path, const char *suffix)
{
	size_t len = strlen(path), n = strlen(suffix);

	return len > n && strcasecmp(path + len - n, suffix) == 0;
}

static const char *foreign_language(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (ends_with(path, foreign[i].suffix))
			return foreign[i].language;
	return NULL;
}

const struct lang *lang_find(const char *name, struct err *e)
{
	const char *want = name;

	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (strcmp(aliases[i].alias, name) == 0)
			want = aliases[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(langs); i++)
		if (strcmp(langs[i].name, want) == 0)
			return &langs[i];
	(void)err_say(e, -EINVAL, "--lang: '%s' is unknown; there are: python, bash, javascript, r",
		      name);
	return NULL;
}

const struct lang *lang_of_file(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(langs); i++)
		if (ends_with(path, langs[i].suffix))
			return &langs[i];
	return NULL;
}

int lang_source(const char *lang, const char *code, const char *arg, struct source *ret,
		struct err *e)
{
	const char *text = code ? code : arg;
	struct source s = { .lang = lang_find(lang ? lang : "python", e), .code = text, .fd = -1 };
	struct stat st;

	if (!s.lang)
		return e->code;
	*ret = s;
	if (code)
		return 0;
	if (strcmp(arg, "-") == 0) {
		*ret = (struct source){ .lang = s.lang, .fd = STDIN_FILENO, .name = arg };
		return 0;
	}
	if (strlen(arg) >= 4096 || stat(arg, &st) < 0) {
		/* Does it look like the name of a file that ought to be there? */
		if ((lang_of_file(arg) || foreign_language(arg)) &&
		    !strpbrk(arg, " \t\n()[]{}'\"=;"))
			return err_say(e, -ENOENT, "%s: no such file; if it is code, use -c", arg);
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return err_say(e, -EISDIR, "%s is a directory; if it is code, use -c", arg);
	if (!lang && foreign_language(arg))
		return err_say(e, -EINVAL,
			       "%s: by its suffix it is %s, and caisson run knows python, bash, "
			       "javascript and r; --lang names one of these, and caisson exec runs "
			       "any program of the image",
			       arg, foreign_language(arg));
	s.code = NULL;
	s.name = arg;
	s.fd = open(arg, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (s.fd < 0)
		return err_set(e, -errno, "open %s", arg);
	if (!lang && lang_of_file(arg))
		s.lang = lang_of_file(arg);
	*ret = s;
	return 0;
}

int lang_read(int fd, const char *name, struct buf *b, struct err *e)
{
	int r = fd_read_buf(fd, b);

	if (r == -EMSGSIZE)
		return err_say(e, -EFBIG, "%s: larger than %u MiB", name, LANG_SOURCE_MAX >> 20);
	return r < 0 ? err_set(e, r, "read %s", name) : 0;
}
