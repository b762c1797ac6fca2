/* SPDX-License-Identifier: Apache-2.0 */
/* test_search.c - A question finds the tool that a person would have named. */
#include "mcp/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit.h"
#include "base/buf.h"

/* As real servers write them. */
static const char github[] =
	"[{\"name\":\"create_issue\",\"description\":\"Create a new issue in a GitHub repository\","
	"\"inputSchema\":{\"type\":\"object\",\"properties\":{\"owner\":{\"type\":\"string\"},"
	"\"title\":{\"type\":\"string\"}}}},"
	"{\"name\":\"list_issues\",\"description\":\"List issues in a repository with filtering "
	"options\"},"
	"{\"name\":\"create_pull_request\",\"description\":\"Create a new pull request in a "
	"GitHub repository\"},"
	"{\"name\":\"merge_pull_request\",\"description\":\"Merge a pull request\"},"
	"{\"name\":\"search_repositories\",\"description\":\"Search for GitHub repositories\"},"
	"{\"name\":\"search_code\",\"description\":\"Search for code across GitHub repositories\"},"
	"{\"name\":\"getFileContents\",\"description\":\"Get the contents of a file or directory "
	"from a repository\"}]";
static const char files[] =
	"[{\"name\":\"read_text_file\",\"description\":\"Read the complete contents of a file "
	"from the file system as text\"},"
	"{\"name\":\"write_file\",\"description\":\"Create a new file or completely overwrite an "
	"existing file\"},"
	"{\"name\":\"list_directory\",\"description\":\"Get a detailed listing of all files and "
	"directories in a path\"},"
	"{\"name\":\"move_file\",\"description\":\"Move or rename files and directories\"},"
	"{\"name\":\"search_files\",\"description\":\"Recursively search for files and "
	"directories matching a pattern\","
	"\"inputSchema\":{\"properties\":{\"excludePatterns\":{\"description\":\"what to "
	"skip\"}}}}]";
static const char weather[] =
	"[{\"name\":\"get_weather\",\"description\":\"Current conditions for a city: "
	"temperature, humidity, wind\"},"
	"{\"name\":\"get_forecast\",\"description\":\"Weather for the next days\"},"
	"{\"name\":\"delete_city\",\"description\":\"Forget a place\","
	"\"inputSchema\":{\"properties\":{\"city\":{\"type\":\"string\"}}}},"
	"{\"name\":\"convert_temperature\",\"description\":\"Celsius to Fahrenheit and back\"},"
	"{\"no\":\"tool\"}, 7]";

static json_t *lists[3];

static struct search *make(void)
{
	static const char *const texts[] = { github, files, weather };
	static const char *const names[] = { "github", "filesystem", "weather" };
	struct search *s = search_new();

	for (size_t i = 0; i < 3; i++) {
		if (!lists[i])
			lists[i] = json_loads(texts[i], 0, NULL);
		assert_non_null(lists[i]);
		assert_int_equal(search_add(s, names[i], names[i], lists[i]), 0);
	}
	return s;
}

static const char *name_of(const struct search_hit *h)
{
	return json_string_value(json_object_get(h->tool, "name"));
}

static const struct row {
	const char *query, *first, *second; /* NULL: nothing; second NULL: whatever */
} rows[] = {
	{ "create_issue", "create_issue", NULL },
	{ "create issue", "create_issue", NULL },
	{ "create an issue on github", "create_issue", NULL },
	{ "issue", "create_issue", "list_issues" },
	{ "issues list", "list_issues", NULL },
	{ "pull request", "create_pull_request", "merge_pull_request" },
	{ "merge", "merge_pull_request", NULL },
	{ "how do I merge a pull request", "merge_pull_request", NULL },
	{ "file contents", "getFileContents", NULL },
	{ "getfilecontents", NULL, NULL }, /* one word that no word is near */
	{ "get file contents", "getFileContents", NULL },
	{ "weather", "get_weather", NULL },
	{ "wether", "get_weather", NULL },
	{ "waether", "get_weather", NULL },
	{ "weath", "get_weather", NULL },
	{ "forcast", "get_forecast", NULL },
	{ "temprature", "convert_temperature", "get_weather" },
	{ "repositries", "search_repositories", NULL },
	{ "isues", "list_issues", NULL },
	{ "humidity", "get_weather", NULL },
	/* The description of a tool counts for more than the name of its server. */
	{ "weather city", "get_weather", NULL },
	{ "city weather", "get_weather", NULL },
	{ "weather of a city", "get_weather", NULL },
	{ "weather delete city", "delete_city", NULL },
	{ "city", "delete_city", "get_weather" },
	{ "weather forecast", "get_forecast", "get_weather" },
	{ "weather delete", "delete_city", NULL },
	{ "github issue", "create_issue", "list_issues" },
	{ "github", "create_issue", NULL },
	{ "rename", "move_file", NULL },
	{ "filesystem read", "read_text_file", NULL },
	{ "github search code", "search_code", NULL },
	{ "search", "search_repositories", "search_code" },
	{ "exclude", "search_files", NULL },
	{ "SEARCH Files!", "search_files", NULL },
	{ "overwrite", "write_file", NULL },
	{ "quaternion", NULL, NULL },
	{ "", NULL, NULL },
	{ " ?! ", NULL, NULL },
};

TEST(ranks)
{
	struct search *s = make();
	int wrong = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct search_hit hits[5];
		size_t n = search_find(s, rows[i].query, NULL, hits, 5);
		const char *first = n > 0 ? name_of(&hits[0]) : NULL;
		const char *second = n > 1 ? name_of(&hits[1]) : NULL;
		bool good = rows[i].first ? first && strcmp(first, rows[i].first) == 0 : n == 0;

		if (rows[i].second)
			good = good && second && strcmp(second, rows[i].second) == 0;
		if (!good)
			print_message("'%s': %s, %s\n", rows[i].query, first ? first : "nothing",
				      second ? second : "nothing");
		wrong += !good;
	}
	search_free(s);
	assert_int_equal(wrong, 0);
}

TEST(more_that_fits_is_first_and_scores_fall)
{
	struct search *s = make();
	struct search_hit hits[20];
	size_t n = search_find(s, "search github repositories", NULL, hits, 20);

	assert_true(n > 3);
	assert_string_equal(name_of(&hits[0]), "search_repositories");
	for (size_t i = 0; i < n; i++) {
		assert_in_range(hits[i].score, 1, 1000);
		assert_true(i == 0 || hits[i].score <= hits[i - 1].score);
	}
	assert_int_equal(search_find(s, "search", NULL, hits, 2), 2);
	assert_int_equal(search_find(s, "search", NULL, hits, 0), 0);
	assert_int_equal(search_find(s, "search", "filesystem", hits, 20), 1);
	assert_string_equal(name_of(&hits[0]), "search_files");
	assert_int_equal(search_find(s, "search", "nobody", hits, 20), 0);
	search_free(s);
}

TEST(as_json)
{
	struct search *s = make();
	_buf_ struct buf b = BUF_INIT(1 << 20);
	const char *server, *alias, *tool, *description;
	int score;

	assert_int_equal(search_write(s, "create issue", NULL, 0, true, &b), 0);
	json_t *v = json_loads(buf_str(&b), 0, NULL);
	json_t *all = json_object_get(v, "results");
	json_t *first = json_array_get(all, 0);

	assert_int_equal(json_array_size(all), 1); /* a limit of 0 is 1 */
	assert_int_equal(json_unpack(first, "{s:s, s:s, s:s, s:s, s:i}", "server", &server, "alias",
				     &alias, "tool", &tool, "description", &description, "score",
				     &score),
			 0);
	assert_string_equal(tool, "create_issue");
	assert_non_null(json_object_get(json_object_get(first, "inputSchema"), "properties"));
	json_decref(v);
	buf_clear(&b);
	assert_int_equal(search_write(s, "a", NULL, 1000, false, &b), 0);
	assert_null(strstr(buf_str(&b), "inputSchema"));
	search_free(s);
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Said, not judged here: `make bench` has the row. */
TEST(a_thousand_tools)
{
	static const char *const verbs[] = { "create", "list", "delete", "update", "search",
					     "get",    "move", "merge",  "export", "watch" };
	static const char *const nouns[] = {
		"issue",  "invoice",  "customer", "report",   "branch",
		"ticket", "calendar", "message",  "contract", "dataset"
	};
	json_t *tools = json_array();
	struct search_hit hits[20];

	for (int i = 0; i < 1000; i++) {
		char name[64], text[400];

		(void)snprintf(name, sizeof(name), "%s_%s_%d", verbs[i % 10], nouns[i / 10 % 10],
			       i / 100);
		(void)snprintf(text, sizeof(text),
			       "%s the %s number %d with its owner, its state and everything that "
			       "belongs to it; answers with a document and the time of the last "
			       "change w%dx q%dz",
			       verbs[i % 10], nouns[i / 10 % 10], i, i * 7, i * 13);
		(void)json_array_append_new(
			tools, json_pack("{s:s, s:s, s:{s:{s:{s:s}, s:{s:s}}}}", "name", name,
					 "description", text, "inputSchema", "properties",
					 "identifier", "description", "which one of them", "filter",
					 "description", "words that must be in it"));
	}
	uint64_t begin = now_us();
	struct search *s = search_new();

	assert_int_equal(search_add(s, "big", "big", tools), 0);
	uint64_t made = now_us();
	size_t n =
		search_find(s, "delte invoices of the custmer by owner and state", NULL, hits, 20);
	uint64_t done = now_us();

	print_message("search: 1000 tools, index %lu us, question %lu us\n",
		      (unsigned long)(made - begin), (unsigned long)(done - made));
	assert_int_equal(n, 20);
	assert_memory_equal(name_of(&hits[0]), "delete_invoice_", 15);
	search_free(s);
	json_decref(tools);
}

static int drop(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		json_decref(lists[i]);
	return 0;
}

struct unit_fixture unit_group = { NULL, drop };
