/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.h - The specification of a cell: defaults, ranges, and the check that both sides run.
 *
 * The client checks to give a person a good message; the warden checks again because it trusts no
 * client. One table serves both, so they cannot disagree.
 */
#ifndef CAISSON_CELL_SPEC_H
#define CAISSON_CELL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/warden.h"

struct err;

/* The user of code inside every cell, and its surroundings. */
#define CELL_UID 1000u
#define CELL_GID 1000u
#define CELL_USER "agent"
#define CELL_HOME "/home/agent"
#define CELL_WORKDIR "/workspace"
#define CELL_HOSTNAME "caisson"
#define CELL_PATH "/usr/local/bin:/usr/bin:/bin"

/* spec_default() - A spec with the documented default limits, image host, no mounts. */
void spec_default(struct cell_spec *s);

/* spec_check() - 0, or -EINVAL with a message that names the option and the accepted range. */
int spec_check(const struct cell_spec *s, struct err *e);

/*
 * spec_path_normal() - Is @path absolute, without "." ".." "//", trailing slash or control bytes,
 * and shorter than CELL_DST_MAX? "/" itself is not accepted. @max: size of the field it sits in.
 */
bool spec_path_normal(const char *path, uint32_t max);

#endif
