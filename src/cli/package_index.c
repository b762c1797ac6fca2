/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_index.c - Find the package indexes, and keep their credentials out of sight.
 *
 * Theory of operation. `caisson serve` calls index_settle() before it becomes the keeper. For each
 * of the two indexes it looks for a setting of the operator (option, then CAISSON_ variable), then
 * for that of the machine. The front finds the address without credentials where it looks anyway:
 * in the option, or in the CAISSON_ variable, which is set. The credentials are taken out of
 * arguments and environment: every process with our rights, and the processes of the daemon, could
 * read both for as long as the daemon runs.
 */
#include "cli/package_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"

static const struct {
	const char *flag, *variable;
} ours[INDEX_KINDS] = {
	[INDEX_PIP] = { "--pip-index", "CAISSON_PIP_INDEX" },
	[INDEX_NPM] = { "--npm-registry", "CAISSON_NPM_REGISTRY" },
};

/* ---- files of pip and npm ------------------------------------------------------------------ */

const struct ini_form ini_python = { .delimiters = "=:", .continues = 1 };
const struct ini_form ini_npm = { .delimiters = "=" };

static const char blanks[] = " \t\r\f\v";

/* Without spaces at either end; in place. */
static char *trim(char *s)
{
	s += strspn(s, blanks);
	for (size_t n = strlen(s); n > 0 && strchr(blanks, s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

struct pair {
	const char *key; /* NULL: none is open */
	char value[INI_VALUE_MAX];
	bool fits;
};

static void append(struct pair *p, const char *text)
{
	size_t n = strlen(p->value), len = strlen(text);

	if (n + len + 2 > sizeof(p->value)) {
		p->fits = false;
		return;
	}
	(void)snprintf(p->value + n, sizeof(p->value) - n, "%s%s", n ? "\n" : "", text);
}

/* @line: not empty, and no comment. */
static void begin(struct pair *p, const struct ini_form *form, char *line)
{
	char *delimiter = strpbrk(line, form->delimiters);

	p->key = NULL;
	if (!delimiter)
		return;
	*delimiter = '\0';
	p->key = trim(line);
	p->value[0] = '\0';
	p->fits = true;
	append(p, trim(delimiter + 1));
}

void ini_read(const struct ini_form *form, char *text,
	      void (*fn)(void *arg, const char *section, const char *key, const char *value),
	      void *arg)
{
	static struct pair p;
	const char *section = "";

	p.key = NULL;
	while (text) {
		char *raw = strsep(&text, "\n"), *line;
		bool indented = raw[0] && strchr(blanks, raw[0]);

		line = trim(raw);
		if (!line[0] || line[0] == '#' || line[0] == ';')
			continue;
		if (form->continues && indented && p.key) {
			append(&p, line);
			continue;
		}
		if (p.key && p.fits)
			fn(arg, section, p.key, p.value);
		p.key = NULL;
		size_t n = strlen(line);

		if (line[0] == '[' && line[n - 1] == ']') {
			line[n - 1] = '\0';
			section = line + 1;
		} else {
			begin(&p, form, line);
		}
	}
	if (p.key && p.fits)
		fn(arg, section, p.key, p.value);
	explicit_bzero(&p, sizeof(p));
}

/* ---- files of the machine ------------------------------------------------------------------ */

/* NULL: it can be trusted. A user who can change it decides where packages come from. */
static const char *distrust(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_size >= (off_t)INDEX_FILE_MAX)
		return "is larger than 64 KiB";
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "is neither yours nor root's";
	return st->st_mode & S_IWOTH ? "can be changed by everybody" : NULL;
}

void index_read(struct index_files *f, const char *dir, const char *name)
{
	static char text[INDEX_FILE_MAX + 1], at[INDEX_FROM_MAX];
	char whole[2 * INDEX_FROM_MAX];
	struct stat st;

	if (!dir || dir[0] != '/' ||
	    (size_t)snprintf(at, sizeof(at), "%s%s", dir, name) >= sizeof(at))
		return;
	(void)snprintf(whole, sizeof(whole), "%s%s", f->root, at);
	_fd_ int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0 || strcmp(at, "/dev/null") == 0)
		return; /* not there, not for us, or empty on purpose: as pip and npm take it */
	const char *why = distrust(&st);
	ssize_t n = why ? 0 : read(fd, text, INDEX_FILE_MAX);

	if (why)
		(void)snprintf(f->note, INDEX_NOTE_MAX, "%s %s, and was not read", at, why);
	if (n <= 0)
		return;
	text[n] = '\0';
	f->path = at;
	ini_read(f->form, text, f->fn, f);
	explicit_bzero(text, sizeof(text));
}

void index_off(struct index_choice *ret, const char *why)
{
	ret->on = false;
	index_keys_wipe(&ret->keys);
	(void)snprintf(ret->note, sizeof(ret->note), "%s", why);
}

void index_distrust(struct index_choice *ret, const char *option)
{
	char why[INDEX_NOTE_MAX];

	(void)snprintf(why, sizeof(why), "%.400s; it may name an index: mend it, or use %s",
		       ret->note, option);
	index_off(ret, why);
}

void index_take(enum index_kind kind, const char *text, const char *from, struct index_choice *ret)
{
	struct err e = { 0 };

	(void)snprintf(ret->from, sizeof(ret->from), "%s", from);
	ret->on = index_url_parse(kind, text, &ret->url, &ret->keys, &e) == 0;
	if (!ret->on) {
		(void)err_wrap(&e, "the index of %s cannot be used", from);
		index_off(ret, e.msg);
	}
}

/* An index whose credentials do not fit in a header, or would go unencrypted, is not used. */
static void judge_keys(enum index_kind kind, struct index_choice *c, struct buf *lines)
{
	_secret_ struct buf ignored = BUF_INIT(1u << 16);
	struct err e = { 0 };

	if (c->on && index_keys_lines(kind, &c->url, &c->keys, lines ? lines : &ignored, &e) < 0) {
		(void)err_wrap(&e, "the index of %s cannot be used", c->from);
		index_off(c, e.msg);
	}
}

void index_of_machine(enum index_kind kind, char **env, const char *root, struct index_choice *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (kind == INDEX_PIP)
		index_pip(env, root, ret);
	else
		index_npm(env, root, ret);
	judge_keys(kind, ret, NULL);
}

/* ---- the operator's settings --------------------------------------------------------------- */

/* Values before the last one do not count, and may have credentials as well. */
static int put_flag(char **argv, const char *flag, const char *url, struct err *e)
{
	size_t len = strlen(flag);

	for (char **at = argv; *at; at++) {
		bool joined = strncmp(*at, flag, len) == 0 && (*at)[len] == '=';
		char *fresh = NULL;

		if (!joined && (strcmp(*at, flag) != 0 || !at[1]))
			continue;
		at += !joined;
		if (asprintf(&fresh, "%s%s%s", joined ? flag : "", joined ? "=" : "", url) < 0)
			return err_set(e, -ENOMEM, "read %s", flag);
		*at = fresh; /* lives as long as the arguments do */
	}
	return 0;
}

/* Variables that had credentials: of pip or npm with a URL, or named in a .npmrc. */
static void clean_environment(const struct index_choice *c)
{
	static const char *const prefixes[] = { "PIP_", "UV_", "NPM_CONFIG_" };
	size_t n = 0;

	if (c->variable[0])
		(void)unsetenv(c->variable);
	for (char **at = environ; *at; at++) {
		const char *url = strstr(*at, "://");
		bool named = false;

		for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
			named |= strncasecmp(*at, prefixes[i], strlen(prefixes[i])) == 0;
		if (!named || ((!url || !strchr(url, '@')) && !strcasestr(*at, ":_auth")))
			environ[n++] = *at;
	}
	environ[n] = NULL;
}

static int put_variable(const char *name, const char *suffix, const char *value, struct err *e)
{
	char whole[64];

	(void)snprintf(whole, sizeof(whole), "%s%s", name, suffix);
	if (value && value[0] ? setenv(whole, value, 1) : unsetenv(whole))
		return err_set(e, -errno, "set %s", whole);
	return 0;
}

/* The operator named it: an error in it stops the start. */
static int settle_named(enum index_kind kind, char **argv, const char *text, const char *source,
			struct buf *lines, struct index_choice *c, struct err *e)
{
	(void)snprintf(c->from, sizeof(c->from), "%s", source);
	c->on = strcmp(text, "none") != 0;
	if (!c->on)
		return put_flag(argv, ours[kind].flag, "none", e);
	if (index_url_parse(kind, text, &c->url, &c->keys, e) < 0)
		return err_wrap(e, "%s", source);
	if (kind == INDEX_NPM && c->url.secure)
		index_npm(environ, "", c);
	if (index_keys_lines(kind, &c->url, &c->keys, lines, e) < 0)
		return err_wrap(e, "%s", source);
	return put_flag(argv, ours[kind].flag, c->url.url, e);
}

static int settle(enum index_kind kind, char **argv, struct buf *lines, struct index_choice *c,
		  struct err *e)
{
	bool joined = false;
	char **at = options_find(argv, ours[kind].flag, &joined);
	const char *variable = options_lookup(environ, ours[kind].variable);
	const char *text = at ? (joined ? *at + strlen(ours[kind].flag) + 1 : *at) : variable;
	int r = 0;

	memset(c, 0, sizeof(*c));
	if (text) {
		r = settle_named(kind, argv, text, at ? ours[kind].flag : ours[kind].variable,
				 lines, c, e);
	} else if (kind == INDEX_PIP && options_peek(argv, environ, "--package-dir")) {
		(void)snprintf(c->note, sizeof(c->note), "--package-dir stands for the index");
	} else {
		index_of_machine(kind, environ, "", c);
		judge_keys(kind, c, lines);
	}
	if (r == 0)
		r = put_variable(ours[kind].variable, "", c->on ? c->url.url : "none", e);
	if (r == 0)
		r = put_variable(ours[kind].variable, INDEX_FROM_ENV, c->from, e);
	if (r == 0)
		r = put_variable(ours[kind].variable, INDEX_NOTE_ENV, c->note, e);
	return r;
}

int index_settle(char **argv, struct buf *lines, struct err *e)
{
	static struct index_choice all[INDEX_KINDS];
	int r = 0;

	for (int kind = 0; r == 0 && kind < INDEX_KINDS; kind++)
		r = settle((enum index_kind)kind, argv, lines, &all[kind], e);
	for (int kind = 0; kind < INDEX_KINDS; kind++) {
		clean_environment(&all[kind]);
		index_keys_wipe(&all[kind].keys);
	}
	return r;
}
