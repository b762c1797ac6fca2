/* SPDX-License-Identifier: Apache-2.0 */
/* test_options.c - A table with every kind of value: sources, spellings, refusals, help. */
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

enum { ONE = 1, TWO = 2, OTHER = 4 };

static struct target {
	bool flag, turn;
	const char *any, *text, *path;
	uint64_t number, size, time, open;
	uint32_t cpus;
	const char *list[3], *pairs[3], *parts[4];
	size_t length;
} t;

static int check_word(const char *v, struct err *e)
{
	return strcmp(v, "bad") == 0 ? err_say(e, -EINVAL, "is bad") : 0;
}

static int set_length(void *target, const char *v, struct err *e)
{
	((struct target *)target)->length = strlen(v);
	return *v ? 0 : err_say(e, -ERANGE, "has no length");
}

#define AT(member) offsetof(struct target, member)

static const struct option_row rows[] = {
	{ "--flag", "-f", NULL, OPTION_FLAG, AT(flag), .env = true, .help = "a flag" },
	{ "--turn", NULL, NULL, OPTION_SWITCH, AT(turn), .initial = "no", .help = "a switch" },
	{ "--any", "-a", "TEXT", OPTION_STRING, AT(any), .help = "any text" },
	{ "--text", NULL, "TEXT", OPTION_TEXT, AT(text), .check = check_word, .help = "a text" },
	{ "--path", NULL, "PATH", OPTION_PATH, AT(path), .env = true, .help = "a path" },
	{ "--number", NULL, "N", OPTION_NUMBER, AT(number), .env = true, .min = 1, .max = 9,
	  .initial = "5", .help = "a number" },
	{ "--size", NULL, "SIZE", OPTION_SIZE, AT(size), .min = 1024, .max = 1 << 20,
	  .help = "a size" },
	{ "--open", NULL, "SIZE", OPTION_SIZE, AT(open), .min = 1, .help = "without an end" },
	{ "--time", NULL, "TIME", OPTION_DURATION, AT(time), .min = 10, .max = 60000,
	  .help = "a time" },
	{ "--cpus", NULL, "N", OPTION_CPUS, AT(cpus), .min = 10, .max = 2000, .help = "cpus" },
	{ "--list", "-l", "ITEM", OPTION_LIST, AT(list), .env = true, .max = 2, .check = check_word,
	  .help = "a list" },
	{ "--pair", NULL, "K=V", OPTION_PAIRS, AT(pairs), .max = 2, .help = "pairs" },
	{ "--max-parts", NULL, "A,B", OPTION_COMMAS, AT(parts), .env = true, .max = 3,
	  .initial = "x", .help = "parts" },
	{ "--length", NULL, "TEXT", OPTION_CUSTOM, 0, .set = set_length, .help = "a length" },
	{ "--length-of", NULL, "NAME[:MODE]", OPTION_CUSTOM, 0, .set = set_length,
	  .help = "in its column" },
	{ "--two", NULL, NULL, OPTION_FLAG, AT(flag), .verbs = TWO, .section = 1, .help = "2nd" },
	{ "--other", NULL, NULL, OPTION_FLAG, AT(flag), .verbs = OTHER, .help = "elsewhere" },
};

static struct options p;
static struct err err;
static char *rest[64];

static int parse_list(bool stop, const char *const *args, const char *const *vars)
{
	static char *argv[64], *env[64];
	int argc = 0;

	options_free(&p);
	memset(&t, 0, sizeof(t));
	for (; args[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)args[argc];
	for (size_t i = 0; i == 0 || vars[i - 1]; i++)
		env[i] = (char *)(uintptr_t)vars[i];
	err = (struct err){ 0 };
	p = (struct options){ .rows = rows,
			      .n_rows = ARRAY_SIZE(rows),
			      .verb = ONE,
			      .command = "caisson test",
			      .target = &t,
			      .env = env,
			      .stop = stop,
			      .rest = rest,
			      .other_verbs = OTHER,
			      .other_remedy = "belongs elsewhere" };
	return options_parse(&p, argc, argv, &err);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__ })
#define parse(...) parse_list(false, LIST("verb", __VA_ARGS__, NULL), LIST(NULL))
#define parse_env(...) parse_list(false, LIST("verb", NULL), LIST(__VA_ARGS__, NULL))

static int teardown(void **state)
{
	(void)state;
	options_free(&p);
	return 0;
}

static void assert_message(int r, const char *want)
{
	assert_int_equal(r, -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_string_equal(err.msg, want);
}

TEST(kinds, NULL, teardown)
{
	assert_int_equal(parse("--flag", "--turn", "--any", "", "--text=x=y", "--path", "/p",
			       "--number", "9", "--size", "1M", "--time", "1m", "--cpus", "0.5",
			       "-l", "a", "--list=b", "--pair", "k=v=w", "--max-parts", " a , b,,c",
			       "--length", "four", "--open", "1T"),
			 0);
	assert_true(t.flag && t.turn);
	assert_string_equal(t.any, "");
	assert_string_equal(t.text, "x=y");
	assert_string_equal(t.path, "/p");
	assert_int_equal(t.number, 9);
	assert_int_equal(t.size, 1 << 20);
	assert_int_equal(t.time, 60000);
	assert_int_equal(t.cpus, 500);
	assert_int_equal(t.open, UINT64_C(1) << 40);
	assert_int_equal(options_count(t.list), 2);
	assert_string_equal(t.list[1], "b");
	assert_string_equal(t.pairs[0], "k=v=w");
	assert_int_equal(options_count(t.parts), 3);
	assert_string_equal(t.parts[0], "a");
	assert_string_equal(t.parts[2], "c");
	assert_int_equal(t.length, 4);
	assert_int_equal(parse("--turn=no", "-f"), 0);
	assert_false(t.turn);
	assert_true(t.flag);
}

TEST(refusals, NULL, teardown)
{
	assert_message(parse("--numbr", "1"), "unknown option '--numbr': did you mean '--number'? "
					      "'caisson test --help' lists them");
	assert_message(parse("-x"), "unknown option '-x'; 'caisson test --help' lists them");
	assert_message(parse("--two"), "unknown option '--two'; 'caisson test --help' lists them");
	assert_message(parse("--other"), "--other belongs elsewhere");
	assert_message(parse("--text"), "--text needs a value: --text TEXT");
	assert_message(parse("-l"), "--list needs a value: --list ITEM");
	assert_message(parse("--flag=1"), "--flag takes no value");
	assert_message(parse("--turn=perhaps"), "--turn: 'perhaps' is neither yes nor no");
	assert_message(parse("--path", "rel"), "--path: must be an absolute path");
	assert_message(parse("--text", "bad"), "--text: is bad");
	assert_message(parse("--pair", "=v"), "--pair: must be K=V");
	assert_message(parse("--list", "bad"), "--list: is bad");
	assert_message(parse("-l", "a", "-l", "b", "-l", "c"), "--list: takes at most 2 values");
	assert_message(parse("--max-parts", "a,b,c,d"), "--max-parts: takes at most 3 values");
	assert_message(
		parse("--size", "1"),
		"--size: must be between 1 KiB and 1 MiB; a number without a unit (K, M, G) is one "
		"of bytes");
	assert_message(parse("--time", "1ms"), "--time: must be between 10 ms and 1 min");
	assert_message(parse("--cpus", "3"), "--cpus: must be between 0.010 and 2");
	assert_message(parse("--open", "0"), "--open: must be at least 1 B");
	assert_message(parse("--length", ""), "--length: has no length");
	assert_int_equal(parse("--number", "10"), -EINVAL);
	assert_non_null(strstr(err.msg, "--number: "));
}

/* Later sources override earlier ones, and lists do not mix. */
TEST(sources, NULL, teardown)
{
	assert_int_equal(parse_env("CAISSON_NUMBER=", "CAISSON_FLAG=0", "CAISSON_TEXT=x"), 0);
	assert_int_equal(t.number, 5);
	assert_false(t.flag);
	assert_null(t.text); /* has no variable */
	assert_string_equal(t.parts[0], "x");
	assert_false(options_given(&p, "--number"));
	assert_false(options_given(&p, "--two")); /* of another verb */
	assert_int_equal(parse_env("CAISSON_NUMBER=7", "CAISSON_FLAG=yes", "CAISSON_MAX_PARTS=a,b"),
			 0);
	assert_int_equal(t.number, 7);
	assert_true(t.flag && options_given(&p, "--number"));
	assert_int_equal(options_count(t.parts), 2);
	assert_int_equal(parse_list(false,
				    LIST("verb", "--number", "8", "--max-parts=c", "--number", "9",
					 "--max-parts=d", NULL),
				    LIST("CAISSON_NUMBER=7", "CAISSON_MAX_PARTS=a,b", NULL)),
			 0);
	assert_int_equal(t.number, 9);
	assert_string_equal(t.parts[0], "c");
	assert_string_equal(t.parts[1], "d");
	assert_null(t.parts[2]);
	assert_message(parse_env("CAISSON_PATH=rel"), "CAISSON_PATH: must be an absolute path");
	assert_int_equal(options_set(&p, "--number", OPTION_BY_OLD_NAME, "OLD", "3", &err), 0);
	assert_int_equal(t.number, 3);
	assert_message(
		options_set(&p, "--size", OPTION_BY_OLD_NAME, "OLD", "1", &err),
		"OLD: must be between 1 KiB and 1 MiB; a number without a unit (K, M, G) is one of bytes");
}

TEST(other_arguments, NULL, teardown)
{
	assert_int_equal(parse("a", "-f", "-", "--", "--flag", "b"), 0);
	assert_int_equal(p.n_rest, 4);
	assert_int_equal(p.n_before, 2);
	assert_true(p.dashes);
	assert_string_equal(p.rest[1], "-");
	assert_string_equal(p.rest[2], "--flag");
	assert_null(p.rest[4]);
	assert_int_equal(parse_list(true, LIST("verb", "-f", "a", "--wrong", NULL), LIST(NULL)), 0);
	assert_int_equal(p.end, 2);
	assert_int_equal(p.n_rest, 2);
	assert_false(p.dashes);
}

/* --help wins over everything that is wrong, but not where it is a value or somebody else's. */
TEST(help_wanted, NULL, teardown)
{
	assert_int_equal(parse("--wrong", "--help"), 1);
	assert_int_equal(parse("--number", "many", "x", "-h"), 1);
	assert_int_equal(parse("--text", "--help"), 0);
	assert_int_equal(parse("--", "--help"), 0);
	assert_int_equal(parse_list(true, LIST("verb", "a", "--help", NULL), LIST(NULL)), 0);
	assert_int_equal(parse_list(false, LIST("verb", "-h", NULL), LIST("CAISSON_PATH=x", NULL)),
			 1);
	assert_true(options_has_word(3, ((char *[]){ "verb", "x", "--json", NULL }), "--json"));
	assert_false(options_has_word(3, ((char *[]){ "verb", "--", "--json", NULL }), "--json"));
}

TEST(help_text, NULL, teardown)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(parse("-f"), 0);
	assert_non_null(f);
	options_help(&p, 0, f);
	assert_int_equal(fclose(f), 0);
	assert_non_null(strstr(text, "  -f, --flag                 a flag\n"));
	assert_non_null(strstr(text, "      --number N             a number (5)\n"));
	assert_non_null(strstr(text, "      --turn                 a switch\n"));
	assert_non_null(strstr(text, "      --length-of NAME[:MODE]\n"
				     "                             in its column\n"));
	assert_null(strstr(text, "--two"));
	assert_null(strstr(text, "--other"));
	free(text);
}

TEST(without_table)
{
	char *argv[] = { "serve", "--a-b", "1", "--a-b=2", "--c", NULL };
	char *env[] = { "CAISSON_C=3", "CAISSON_A_B=4", "CAISSON_D=", NULL };
	bool joined = false;

	assert_string_equal(options_peek(argv, env, "--a-b"), "2");
	assert_string_equal(options_peek(argv, env, "--c"), "3"); /* no value follows */
	assert_null(options_peek(argv, env, "--d"));
	assert_ptr_equal(options_find(argv, "--a-b", &joined), &argv[3]);
	assert_true(joined);
	assert_null(options_find(argv, "--a", NULL));
}
