/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - The operator's policy, as read from its file: a ceiling or a list under each name.
 *
 *   [daemon]         for all owners together
 *   [default]        for each owner
 *   [owners.NAME]    for this one; each key replaces that of [default]
 *
 * Without a key there is no ceiling here; the daemon's own limits (its options) stay. An unknown
 * key is refused, never ignored. Pure but for memory: the same functions serve the daemon, its
 * reloads and `caisson policy check`. spec/judge.h enforces the rules, main/policy_load.h reads the
 * file.
 */
#ifndef CAISSON_FRONT_POLICY_RULES_H
#define CAISSON_FRONT_POLICY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/policy/toml.h"
#include "front/support/name.h"

#define RULES_TEXT_MAX (256u << 10)
#define RULES_OWNERS_MAX 1024
#define RULES_ERRORS_MAX 20
#define RULES_NAME_MAX (OWNER_MAX + 40) /* "owners.alice.memory_mib" */

enum rule {
	/* numbers */
	RULE_MEMORY_MIB,
	RULE_CPUS, /* in thousandths */
	RULE_PIDS,
	RULE_DISK_MIB,
	RULE_EXECUTION_SECONDS,
	RULE_LIFE_SECONDS,
	RULE_IDLE_SECONDS,
	RULE_SANDBOXES,
	RULE_EXECUTIONS,
	/* lists */
	RULE_IMAGES,
	RULE_IMAGE_PULLS,
	RULE_TOOLS,
	RULE_EGRESS,
	RULE_EGRESS_DENIED,
	RULE_SECRETS,
	RULE_PACKAGES,
	RULE_PACKAGES_BLOCKED,
	RULE_MOUNTS,
	RULE_MAX_,
	RULE_NUMBERS_ = RULE_IMAGES,
};

/* The value of one key. */
struct rule_value {
	struct toml_at at; /* line 0: the key is absent */
	uint64_t number;
	char **words; /* of a list, n of them */
	size_t n;
};

struct rules_section {
	char owner[OWNER_MAX]; /* of [owners.NAME] */
	struct toml_at at;
	struct rule_value values[RULE_MAX_];
};

struct rules {
	char sha256[65]; /* of the file's bytes */
	struct rules_section daemon, fallback;
	struct rules_section *owners;
	size_t n_owners;
};

struct rules_error {
	struct toml_at at;
	char message[240]; /* one line, without the place */
};

/* The errors, in the order of the text; the first RULES_ERRORS_MAX of n. */
struct rules_report {
	struct rules_error errors[RULES_ERRORS_MAX];
	size_t n;
};

/* rules_parse() - NULL: @report has at least one error. */
struct rules *rules_parse(const char *text, size_t len, struct rules_report *report);
void rules_free(struct rules *r); /* NULL is allowed */

/* rules_complain() - Add an error. */
void rules_complain(struct rules_report *report, struct toml_at at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- queries ------------------------------------------------------------------------------- */

/* rule_name() - As in the file. */
const char *rule_name(enum rule rule);

/*
 * rules_of() - The value for @owner (NULL: for all owners together). @ret_name gets
 * "owners.alice.memory_mib" or "default.memory_mib"; may be NULL. NULL: no ceiling; also when @r is
 * NULL.
 */
const struct rule_value *rules_of(const struct rules *r, const char *owner, enum rule rule,
				  char ret_name[RULES_NAME_MAX]);

/* rules_package() - Bring the name of a package into the one form that lists have. False: invalid
 * name. */
bool rules_package(char *name);

/* rule_lists() - Whether @word is in the list. */
bool rule_lists(const struct rule_value *v, const char *word);

/*
 * rule_lists_image() - Whether an image is in a list of images or of pulls: "host" and "dir:/PATH"
 * by their names, a reference by a pattern of the list (image/ref.h).
 */
bool rule_lists_image(const struct rule_value *v, const char *image);

/*
 * rule_lists_mount() - How the operator's mount at @place may be used: the most that a matching
 * entry (base/wild.h) gives.
 */
enum rule_mount { RULE_MOUNT_NONE, RULE_MOUNT_READ, RULE_MOUNT_WHOLE };
enum rule_mount rule_lists_mount(const struct rule_value *v, const char *place);

#endif
