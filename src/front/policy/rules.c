/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.c - The rules of a policy, and their values for an owner.
 *
 * One table has every key: the tables it may be in, its type, its bounds. rules_read.c reads a
 * policy from its text. The table of an owner replaces [default], key by key.
 */
#include "front/policy/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wild.h"
#include "front/policy/egress_pattern.h"
#include "front/policy/rule_rows.h"
#include "front/policy/secret_use.h"
#include "front/support/mounts.h"
#include "image/ref.h"

#define YEAR_S 31536000
#define EGRESS_WORD "a host name, *.DOMAIN or *, with or without :PORT or :*"

/* ---- words of lists ------------------------------------------------------------------------ */

/* Images of the machine itself; other words are patterns of references. */
static bool is_own_image(const char *word)
{
	return strcmp(word, "host") == 0 || strncmp(word, "dir:", 4) == 0;
}

static bool check_image(char *word)
{
	return is_own_image(word) ? strcmp(word, "host") == 0 || word[4] == '/' :
				    ref_pattern_ok(word);
}

static bool check_pull(char *word)
{
	return !is_own_image(word) && ref_pattern_ok(word);
}

static bool check_tool(char *word)
{
	return word[0] && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-.") == strlen(word);
}

static bool check_egress(char *word)
{
	struct egress_pattern ignored;

	return egress_pattern_parse(word, &ignored);
}

static bool check_secret(char *word)
{
	struct secret_use u;

	return secret_use_parse(word, &u) && !u.host[0];
}

/* As PEP 503: lower case, runs of "-_." are one "-". A scope of npm (@scope/name) stays. */
bool rules_package(char *word)
{
	char *to = word;
	bool scoped = word[0] == '@';

	for (const char *p = word; *p; p++) {
		bool upper = *p >= 'A' && *p <= 'Z', mark = *p == '-' || *p == '_' || *p == '.';
		bool plain = upper || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');

		if (!plain && !mark && !(scoped && (*p == '@' || *p == '/')))
			return false;
		if (mark && (to == word || !p[1]))
			return false;
		if (mark && to[-1] == '-')
			continue;
		*to++ = (char)(mark ? '-' : upper ? *p | 0x20 : *p);
	}
	*to = '\0';
	return to > word;
}

/* A mode can only take rights away, so the only one is ro. */
static bool check_mount(char *word)
{
	struct mount_word w;

	return mount_word_parse(word, &w) && w.mode != MOUNT_RW;
}

const struct rule_row rule_rows[RULE_MAX_] = {
	[RULE_MEMORY_MIB] = { "memory_mib", IN_OWNER, 16, 1048576 },
	[RULE_CPUS] = { "cpus", IN_OWNER, 10, 1024000 },
	[RULE_PIDS] = { "pids", IN_OWNER, 1, 32768 },
	[RULE_DISK_MIB] = { "disk_mib", IN_OWNER, 1, 1048576 },
	[RULE_EXECUTION_SECONDS] = { "execution_seconds", IN_OWNER, 1, 86400 },
	[RULE_LIFE_SECONDS] = { "life_seconds", IN_OWNER, 1, YEAR_S },
	[RULE_IDLE_SECONDS] = { "idle_seconds", IN_OWNER, 1, YEAR_S },
	[RULE_SANDBOXES] = { "sandboxes", IN_DAEMON | IN_OWNER, 0, 4000 },
	[RULE_EXECUTIONS] = { "executions", IN_DAEMON | IN_OWNER, 0, 100000 },
	[RULE_IMAGES] = { "images", IN_OWNER, .check = check_image,
			  .word = "host, dir:/PATH or a pattern of references (python, "
				  "r.example/team/*)" },
	[RULE_IMAGE_PULLS] = { "image_pulls", IN_OWNER, .check = check_pull,
			       .word = "a pattern of references (python, r.example/team/*)" },
	[RULE_TOOLS] = { "tools", IN_OWNER, .check = check_tool, .word = "the name of a tool" },
	[RULE_EGRESS] = { "egress", IN_OWNER, .check = check_egress, .word = EGRESS_WORD },
	[RULE_EGRESS_DENIED] = { "egress_denied", IN_OWNER, .check = check_egress,
				 .word = EGRESS_WORD },
	[RULE_SECRETS] = { "secrets", IN_OWNER, .check = check_secret,
			   .word = "the name of a secret, without a host" },
	[RULE_PACKAGES] = { "packages", IN_OWNER, .check = rules_package,
			    .word = "the name of a package" },
	[RULE_PACKAGES_BLOCKED] = { "packages_blocked", IN_OWNER, .check = rules_package,
				    .word = "the name of a package" },
	[RULE_MOUNTS] = { "mounts", IN_OWNER, .check = check_mount,
			  .word = "a place in sandboxes, as in /data, /models/* or /data:ro" },
};

const char *rule_name(enum rule rule)
{
	return rule_rows[rule].name;
}

static void free_section(struct rules_section *s)
{
	for (size_t i = 0; i < RULE_MAX_; i++) {
		for (size_t n = 0; n < s->values[i].n; n++)
			free(s->values[i].words[n]);
		free(s->values[i].words);
	}
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	free_section(&r->daemon);
	free_section(&r->fallback);
	for (size_t i = 0; i < r->n_owners; i++)
		free_section(&r->owners[i]);
	free(r->owners);
	free(r);
}

/* ---- queries ------------------------------------------------------------------------------- */

const struct rule_value *rules_of(const struct rules *r, const char *owner, enum rule rule,
				  char ret_name[RULES_NAME_MAX])
{
	const struct rule_value *v = NULL;
	const char *table = owner ? "default" : "daemon";
	const char *dot = "";

	for (size_t i = 0; r && owner && i < r->n_owners; i++)
		if (strcmp(r->owners[i].owner, owner) == 0 && r->owners[i].values[rule].at.line)
			v = &r->owners[i].values[rule];
	if (v) {
		table = "owners.";
		dot = owner;
	} else if (r) {
		v = owner ? &r->fallback.values[rule] : &r->daemon.values[rule];
	}
	if (!v || !v->at.line)
		return NULL;
	if (ret_name)
		(void)snprintf(ret_name, RULES_NAME_MAX, "%s%s.%s", table, dot,
			       rule_rows[rule].name);
	return v;
}

bool rule_lists(const struct rule_value *v, const char *word)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->words[i], word) == 0)
			return true;
	return false;
}

bool rule_lists_image(const struct rule_value *v, const char *image)
{
	struct ref ref;

	if (is_own_image(image))
		return rule_lists(v, image);
	if (ref_parse(image, &ref, NULL) < 0)
		return false;
	for (size_t i = 0; i < v->n; i++)
		if (!is_own_image(v->words[i]) && ref_matches(&ref, v->words[i]))
			return true;
	return false;
}

enum rule_mount rule_lists_mount(const struct rule_value *v, const char *place)
{
	enum rule_mount may = RULE_MOUNT_NONE;
	struct mount_word w;

	for (size_t i = 0; i < v->n && may != RULE_MOUNT_WHOLE; i++)
		if (mount_word_parse(v->words[i], &w) && wild_match(w.place, place))
			may = w.mode == MOUNT_RO ? RULE_MOUNT_READ : RULE_MOUNT_WHOLE;
	return may;
}
