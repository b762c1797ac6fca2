/* SPDX-License-Identifier: Apache-2.0 */
/* pull_lines.c - Progress and failures of a pull, from lines of JSON to texts and refusals. */
#include "front/images/pull_lines.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h" /* ARRAY_SIZE */
#include "base/num.h"
#include "front/support/refusal.h"
#include "image/ref.h"

#define LINE_BYTES (64u << 10)
#define TEXT_MAX 320

static const char *text_of(const json_t *object, const char *member)
{
	const char *s = json_string_value(json_object_get(object, member));

	return s ? s : "";
}

static uint64_t number_of(const json_t *object, const char *member)
{
	json_int_t v = json_integer_value(json_object_get(object, member));

	return v > 0 ? (uint64_t)v : 0;
}

/* ---- progress ------------------------------------------------------------------------------ */

static void tell(struct pull_lines *l, const char *state, uint64_t layer, uint64_t layers)
{
	char text[TEXT_MAX], done[NUM_FORMAT_MAX], total[NUM_FORMAT_MAX];
	struct pull_progress now = { .text = text };

	for (size_t i = 0; i < PULL_LAYERS_MAX; i++) {
		now.done += l->done[i];
		now.total += l->total[i];
	}
	if (strcmp(state, "unpacking") == 0)
		(void)snprintf(text, sizeof(text),
			       "pulling %.200s: unpacking layer %" PRIu64 " of %" PRIu64, l->ref,
			       layer, layers);
	else if (now.total)
		(void)snprintf(text, sizeof(text), "pulling %.200s: %s of %s", l->ref,
			       num_format_size(now.done, done, sizeof(done)),
			       num_format_size(now.total, total, sizeof(total)));
	else
		(void)snprintf(text, sizeof(text), "pulling %.200s", l->ref);
	l->moved(l->arg, &now);
}

static void on_layer(struct pull_lines *l, const json_t *root)
{
	uint64_t layer = number_of(root, "layer"), layers = number_of(root, "layers");
	const char *state = text_of(root, "state");
	uint64_t bytes = number_of(root, "bytes"), total = number_of(root, "total");

	if (layer < 1 || layer > PULL_LAYERS_MAX || total > UINT64_MAX / (2 * PULL_LAYERS_MAX))
		return;
	l->total[layer - 1] = total;
	l->done[layer - 1] = bytes < total ? bytes : total;
	/* Of those that wait, one line would come after the other. */
	if (strcmp(state, "waiting") != 0 || layer == layers)
		tell(l, state, layer, layers);
}

/* ---- lines --------------------------------------------------------------------------------- */

static int on_line(void *arg, char *line, size_t len)
{
	struct pull_lines *l = arg;
	json_t *root = json_loadb(line, len, 0, NULL);
	const json_t *error = json_object_get(root, "error");
	const char *event = text_of(root, "event");

	if (error) {
		(void)snprintf(l->code, sizeof(l->code), "%.23s", text_of(error, "code"));
		(void)snprintf(l->error, sizeof(l->error), "%.319s", text_of(error, "message"));
	} else if (strcmp(event, "done") == 0) {
		(void)snprintf(l->digest, sizeof(l->digest), "%.71s", text_of(root, "digest"));
	} else if (strcmp(event, "layer") == 0 || strcmp(event, "progress") == 0) {
		on_layer(l, root);
	} else if (strcmp(event, "pulling") == 0) {
		tell(l, "", 0, 0);
	}
	json_decref(root);
	return 0;
}

static int on_long(void *arg, const struct lines *lines)
{
	(void)arg, (void)lines;
	return 0;
}

void pull_lines_init(struct pull_lines *l, const char *ref,
		     void (*moved)(void *arg, const struct pull_progress *now), void *arg)
{
	struct ref parsed;

	*l = (struct pull_lines){ .moved = moved, .arg = arg };
	if (ref_parse(ref, &parsed, NULL) == 0)
		ref_short(&parsed, l->ref);
	lines_init(&l->lines, on_line, l);
	lines_limit(&l->lines, LINE_BYTES, on_long);
}

void pull_lines_free(struct pull_lines *l)
{
	lines_free(&l->lines);
}

int pull_lines_feed(struct pull_lines *l, const char *data, size_t len)
{
	return lines_feed(&l->lines, data, len);
}

/* ---- failures ------------------------------------------------------------------------------ */

#define TRY_AGAIN "try again later; the operator can test the way to it with: caisson image pull"
#define NO_SPACE "the operator frees space, for example with: caisson image prune"

static const struct {
	const char *error; /* as caisson-image names it */
	enum refusal_kind kind;
	const char *code, *hint;
} failures[] = {
	{ "ENOENT", REFUSAL_NOT_FOUND, "image_not_found", "check its name and its tag" },
	{ "EACCES", REFUSAL_NOT_FOUND, "image_not_found",
	  "check its name; for an image that is not public the operator logs in (docker login, or "
	  "--image-authfile)" },
	{ "EHOSTUNREACH", REFUSAL_BAD_ANSWER, "registry_unavailable", TRY_AGAIN },
	{ "ENOSPC", REFUSAL_NO_SPACE, "image_pull_failed", NO_SPACE },
	{ "EDQUOT", REFUSAL_NO_SPACE, "image_pull_failed", NO_SPACE },
};

void pull_lines_refusal(const struct pull_lines *l, const char *ref, struct refusal *ret)
{
	const char *why = l->error[0] ? l->error : "the process that pulls it was killed";

	for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
		if (strcmp(l->code, failures[i].error) == 0) {
			(void)refusal_set(ret, failures[i].kind, failures[i].code, "image",
					  failures[i].hint, "%.120s cannot be pulled: %.180s", ref,
					  why);
			return;
		}
	(void)refusal_set(ret, REFUSAL_BAD_ANSWER, "image_pull_failed", "image", NULL,
			  "%.120s cannot be pulled: %.180s", ref, why);
}
