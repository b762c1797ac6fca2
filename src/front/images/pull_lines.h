/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull_lines.h - The lines of JSON that `caisson image pull --json` writes, read.
 *
 * The messages in it quote a registry, and are data. Pure but for memory.
 */
#ifndef CAISSON_FRONT_IMAGES_PULL_LINES_H
#define CAISSON_FRONT_IMAGES_PULL_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "client/lines.h"
#include "front/images/pulls.h"

struct refusal;

struct pull_lines {
	struct lines lines;
	void (*moved)(void *arg, const struct pull_progress *now);
	void *arg;
	char ref[IMAGE_OPENER_REF_MAX]; /* short, for people */
	uint64_t done[PULL_LAYERS_MAX], total[PULL_LAYERS_MAX];
	char digest[72];           /* of the manifest, when it is done; or empty */
	char code[24], error[320]; /* of a failure: the name of an errno, the message; or empty */
};

/* pull_lines_init() - @ref: canonical. @moved: called for each line that tells progress. */
void pull_lines_init(struct pull_lines *l, const char *ref,
		     void (*moved)(void *arg, const struct pull_progress *now), void *arg);
void pull_lines_free(struct pull_lines *l);

/* pull_lines_feed() - 0, or -errno: these are no lines of caisson-image. */
int pull_lines_feed(struct pull_lines *l, const char *data, size_t len);

/* pull_lines_refusal() - The pull of @ref failed: the refusal that its last line gives. */
void pull_lines_refusal(const struct pull_lines *l, const char *ref, struct refusal *ret);

#endif
