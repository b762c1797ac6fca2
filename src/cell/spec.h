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

/* Lines of /etc/passwd and /etc/group. The agent's shell is the last field of its line. */
#define CELL_PASSWD_ROOT "root:x:0:0:root:/root:/usr/sbin/nologin\n"
#define CELL_PASSWD_AGENT CELL_USER ":x:1000:1000:" CELL_USER ":" CELL_HOME ":"
#define CELL_GROUP_ROOT "root:x:0:\n"
#define CELL_GROUP_AGENT CELL_USER ":x:1000:\n"

/*
 * The daemon's own programs in a cell: bin before the image's programs, and last after them, where
 * those of installed packages are, too. The directory is in the mount of packages; a cell without
 * that mount has it not, and loses nothing by a name in PATH.
 */
#define CELL_TOOLS "/packages/tools"
#define CELL_TOOLS_PATH(path)                                                                      \
	CELL_TOOLS "/bin:" path ":" CELL_HOME "/.local/bin:" CELL_TOOLS "/last"
#define CELL_TOOLS_PYTHONPATH CELL_TOOLS "/lib"

/* In every cell; node reads it first: os.networkInterfaces() without netlink (cell.policy). */
#define CELL_NODE_PRELOAD "etc/caisson-node.js"
#define CELL_NODE_REQUIRE "--require=/" CELL_NODE_PRELOAD

/*
 * Installers wait for more than a minute for a name that does not exist, unless they are told not
 * to. A host that egress allows has one more try; then pip installs to the home directory, because
 * the system is read-only, and need not protect it.
 */
#define CELL_PROGRAMS_ENV                                                                          \
	"PIP_RETRIES=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_BREAK_SYSTEM_PACKAGES=1",         \
		"UV_HTTP_RETRIES=1", "NPM_CONFIG_FETCH_RETRY_MINTIMEOUT=100",                      \
		"NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT=500", "NPM_CONFIG_UPDATE_NOTIFIER=false",       \
		"NODE_OPTIONS=" CELL_NODE_REQUIRE

/* spec_default() - A spec with the documented default limits, image host, no mounts. */
void spec_default(struct cell_spec *s);

/* spec_check() - 0, or -EINVAL with a message that names the option and the accepted range. */
int spec_check(const struct cell_spec *s, struct err *e);

/* spec_without() - The layers of --without, as in "seccomp,cgroup", added to @ret as enum
 * cell_without. 0 or -EINVAL. */
int spec_without(const char *words, uint32_t *ret, struct err *e);

/* spec_machine_memory() - The memory of the whole machine, in bytes. */
uint64_t spec_machine_memory(void);
/* spec_check_memory() - A limit above that would never hold; the default is not the caller's, and
 * stays on a small machine. 0, or -EINVAL with both numbers. */
int spec_check_memory(uint64_t bytes, struct err *e);

/*
 * spec_path_normal() - Is @path absolute, without "." ".." "//", trailing slash or control bytes,
 * and shorter than CELL_DST_MAX? "/" itself is not accepted. @max: size of the field it sits in.
 */
bool spec_path_normal(const char *path, uint32_t max);

#endif
