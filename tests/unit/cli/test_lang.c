/* SPDX-License-Identifier: Apache-2.0 */
/* test_lang.c - The table of languages: names, aliases, suffixes, and how each is started. */
#include "base/err.h"
#include "base/fd.h"
#include "cli/lang.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

TEST(names)
{
	static const struct {
		const char *name, *lang;
	} rows[] = {
		{ "python", "python" },
		{ "py", "python" },
		{ "python3", "python" },
		{ "bash", "bash" },
		{ "sh", "bash" },
		{ "shell", "bash" },
		{ "javascript", "javascript" },
		{ "js", "javascript" },
		{ "node", "javascript" },
		{ "r", "r" },
		{ "R", "r" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err e = { 0 };
		const struct lang *l = lang_find(rows[i].name, &e);

		assert_non_null(l);
		assert_string_equal(l->name, rows[i].lang);
		assert_int_equal(e.code, 0);
	}
}

TEST(unknown_names)
{
	static const char *const names[] = { "",           "ruby", "Python", "pythonx", "pyt",
					     "python3.11", ".py",  "bash ",  "-" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct err e = { 0 };

		assert_null(lang_find(names[i], &e));
		assert_int_equal(e.code, -EINVAL);
		assert_non_null(strstr(e.msg, "--lang"));
		assert_non_null(strstr(e.msg, names[i]));
		assert_non_null(strstr(e.msg, "python, bash, javascript, r"));
		assert_null(lang_find(names[i], NULL));
	}
}

TEST(suffixes)
{
	static const struct {
		const char *path, *lang; /* NULL: no language claims it */
	} rows[] = {
		{ "a.py", "python" },
		{ "/x/y.z/script.py", "python" },
		{ "A.PY", "python" },
		{ "run.sh", "bash" },
		{ "app.js", "javascript" },
		{ "plot.r", "r" },
		{ "plot.R", "r" },
		{ "./-.sh", "bash" },
		{ "a.b.js", "javascript" },
		/* A suffix alone is the name of a hidden file. */
		{ ".py", NULL },
		{ ".r", NULL },
		{ "", NULL },
		{ "py", NULL },
		{ "a.pyc", NULL },
		{ "a.py ", NULL },
		{ "a.json", NULL },
		{ "a.mjs", NULL },
		{ "a.bash", NULL },
		{ "script.py/x", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct lang *l = lang_of_file(rows[i].path);

		if (rows[i].lang) {
			assert_non_null(l);
			assert_string_equal(l->name, rows[i].lang);
		} else if (l) {
			fail_msg("%s taken for %s", rows[i].path, l->name);
		}
	}
}

/* Each row can be used: there is a program, and room for the end of the list. */
TEST(prefixes)
{
	static const char *const names[] = { "python", "bash", "javascript", "r" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct lang *l = lang_find(names[i], NULL);
		char path[16];

		assert_non_null(l);
		assert_non_null(l->inline_prefix[0]);
		assert_non_null(l->file_prefix[0]);
		assert_null(l->inline_prefix[LANG_PREFIX_MAX - 1]);
		assert_null(l->file_prefix[LANG_PREFIX_MAX - 1]);
		assert_string_equal(l->inline_prefix[0], l->file_prefix[0]);
		/* Found through the cell's PATH, never a path of the host's. */
		assert_null(strchr(l->file_prefix[0], '/'));
		assert_int_equal(l->suffix[0], '.');
		(void)snprintf(path, sizeof(path), "x%s", l->suffix);
		assert_ptr_equal(lang_of_file(path), l);
	}
	/* bash takes its $0 from the first argument after the code. */
	assert_string_equal(lang_find("bash", NULL)->after_code, "bash");
}
