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

/*
 * The daemon's own programs in a cell: bin before the image's programs, and last after them, where
 * those of installed packages are, too. The directory is in the mount of packages; a cell without
 * that mount has it not, and loses nothing by a name in PATH.
 */
#define CELL_TOOLS "/packages/tools"
#define CELL_TOOLS_PATH(path)                                                                      \
	CELL_TOOLS "/bin:" path ":" CELL_HOME "/.local/bin:" CELL_TOOLS "/last"
#define CELL_TOOLS_PYTHONPATH CELL_TOOLS "/lib"

/* Installers wait for more than a minute for a name that does not exist, unless they are told not
 * to. A host that egress allows has one more try; then pip installs to the home directory, because
 * the system is read-only, and need not protect it. */
#define CELL_INSTALLERS_ENV                                                                        \
	"PIP_RETRIES=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_BREAK_SYSTEM_PACKAGES=1",         \
		"UV_HTTP_RETRIES=1", "NPM_CONFIG_FETCH_RETRY_MINTIMEOUT=100",                      \
		"NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT=500", "NPM_CONFIG_UPDATE_NOTIFIER=false"

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
