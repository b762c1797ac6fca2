/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lookalikes.c - Mistaken and honest names: known imitations are refused, and no package of
 * the survey (tests/survey) is.
 */
#include <stdio.h>
#include <string.h>

#include "../../unit.h"
#include "base/embed.h"
#include "base/fd.h"
#include "front/packages/package_rules.h"
#include "front/packages/requirement.h"
#include "front/support/config.h"
#include "front/support/refusal.h"

extern const struct embed_file popular_files[];

/* The name that @name is taken for; NULL: none. */
static const char *taken_for(enum ecosystem eco, const char *name)
{
	static char other[PACKAGE_NAME_MAX + 1];
	char canonical[PACKAGE_NAME_MAX + 1];

	assert_null(requirement_name(eco, name, canonical));
	return rules_lookalike(eco, canonical, NULL, 0, other) ? other : NULL;
}

TEST(mistakes_are_refused)
{
	FILE *f = fopen("tests/unit/front/packages/typosquats.txt", "re");
	char line[300], language[20], name[PACKAGE_NAME_MAX + 1], meant[PACKAGE_NAME_MAX + 1];
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%19s %128s %128s", language, name, meant), 3);
		const char *other = taken_for(ecosystem_find(language), name);

		if (!other || strcmp(other, meant) != 0)
			fail_msg("%s: taken for '%s', not for '%s'", name, other ? other : "",
				 meant);
		n++;
	}
	assert_true(n > 80);
	(void)fclose(f);
}

static void expect_honest(enum ecosystem eco, const char *name)
{
	const char *other = taken_for(eco, name);

	if (other)
		fail_msg("%s is refused: taken for '%s'", name, other);
}

TEST(no_package_of_the_survey_is_refused)
{
	static const struct {
		enum ecosystem eco;
		const char *path;
		size_t n;
	} lists[] = { { ECO_PYTHON, "tests/survey/python.txt", 300 },
		      { ECO_JAVASCRIPT, "tests/survey/javascript.txt", 200 } };
	char line[300], name[PACKAGE_NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		FILE *f = fopen(lists[i].path, "re");
		size_t n = 0;

		assert_non_null(f);
		while (fgets(line, sizeof(line), f))
			if (line[0] != '#' && sscanf(line, "%128s", name) == 1) {
				expect_honest(lists[i].eco, name);
				n++;
			}
		assert_int_equal(n, lists[i].n);
		(void)fclose(f);
	}
}

TEST(honest_neighbours)
{
	static const char *const python[] = {
		"boto",
		"six",
		"sxi",
		"my-own-thing",
		"psycopg",
		"pypdf2",
		"scapy",
		"markdown2",
		"nvidia-nccl-cu11",
		"mypy-boto3-sqs",
		"google-cloud-dns",
		"types-attrs",
	};
	static const char *const javascript[] = {
		"socket.io",
		"preact",
		"vuex",
		"nuxt",
		"koa",
		"d3",
		"babel-preset-stage-1",
		"mssql",
		"@types/nodes",
		"@babel/cores",
		"lodash.merge",
		"@my-company/react-dom",
		"JSONStream",
	};

	for (size_t i = 0; i < ARRAY_SIZE(python); i++)
		expect_honest(ECO_PYTHON, python[i]);
	for (size_t i = 0; i < ARRAY_SIZE(javascript); i++)
		expect_honest(ECO_JAVASCRIPT, javascript[i]);
}

/* A request that names both did not mistake one for the other; a known imitation is refused anyway.
 */
TEST(beside_the_name_that_it_resembles)
{
	struct config c = { .package_count = 1 };
	struct requirement asked[] = { { .name = "fastapii" }, { .name = "fastapi" } };
	struct refusal why;

	assert_int_equal(rules_request(&c, ECO_PYTHON, asked, 1, &why), -1);
	assert_non_null(strstr(why.message, "did you mean 'fastapi'?"));
	assert_int_equal(rules_request(&c, ECO_PYTHON, asked, 2, &why), 0);
	struct requirement squat[] = { { .name = "colourama" }, { .name = "colorama" } };

	assert_int_equal(rules_request(&c, ECO_PYTHON, squat, 2, &why), -1);
	assert_string_equal(why.code, "package_lookalike");
	c.known_packages[0] = "colour*";
	assert_int_equal(rules_request(&c, ECO_PYTHON, squat, 2, &why), 0);
}

/* Every word of a list is a canonical name of a length that fits; a mistaken one has its meaning.
 */
TEST(lists)
{
	for (enum ecosystem eco = 0; eco < ECO_MAX_; eco++) {
		const char *p = (const char *)embed_find(popular_files, ecosystem_name(eco))->data;
		int section = 0, words[4] = { 0 };

		for (; *(p += strspn(p, " \n"));
		     p += strcspn(p, *p == '#' || *p == '[' ? "\n" : " \n")) {
			char name[PACKAGE_NAME_MAX + 1], canonical[PACKAGE_NAME_MAX + 1];
			size_t len = strcspn(p, " =\n"), all = strcspn(p, " \n");

			section += *p == '[';
			if (*p == '#' || *p == '[')
				continue;
			assert_in_range(section, 1, 3);
			assert_in_range(all, 1, PACKAGE_NAME_MAX);
			assert_int_equal(len < all, section == 3);
			words[section]++;
			memcpy(name, p, len);
			name[len] = '\0';
			assert_null(requirement_name(eco, name, canonical));
			assert_string_equal(name, canonical);
			if (section == 3)
				assert_non_null(taken_for(eco, name));
			else
				expect_honest(eco, name);
		}
		assert_true(words[1] >= 1000 && words[2] > 0 && words[3] > 0);
	}
}
