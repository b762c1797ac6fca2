/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packages.h - What sandboxes can import beyond their image (docs/packages.md).
 *
 * Off when there is neither an index (--pip-index none, --npm-registry none) nor a directory of
 * packages: then there is no package store, cells have no further mount, and every request is
 * refused with the option that is missing.
 */
#ifndef CAISSON_FRONT_PACKAGES_PACKAGES_H
#define CAISSON_FRONT_PACKAGES_PACKAGES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/packages/package_store.h"
#include "front/packages/trees.h"
#include "net/loop.h"

struct err;
struct front;
struct install;
struct json;
struct cell_spec;
struct sandbox;
struct kernel;

#define PACKAGES_PATH "/packages"   /* of trees, in a cell */
#define PACKAGES_DIR "/package-dir" /* of --package-dir, in a fetcher's cell */
#define PACKAGES_RATES 64u

/* How often an owner had something fetched in this hour. */
struct package_rate {
	uint64_t owner; /* hash; 0: empty */
	uint64_t since_ns;
	uint64_t n;
};

struct packages {
	int store_fd; /* trees, to be mounted in cells; -1: off */
	int dir_fd;   /* --package-dir; -1: none */
	struct package_store store;
	struct trees trees;
	json_t *pins; /* NULL: none */
	struct install *installs;
	size_t n_installs;
	struct timer tidy;
	struct package_rate rates[PACKAGES_RATES];
};

/* packages_open() - Before the jail. packages_start() - In it, when the sandboxes of former fronts
 * are known. */
int packages_open(struct front *f, struct err *e);
int packages_start(struct front *f, struct err *e);
bool packages_on(const struct front *f);

/* packages_tidy_soon() - There is more than there was, or less is used: look whether it is too
 * much. */
void packages_tidy_soon(struct front *f);
/* packages_left() - A sandbox is gone for good. */
void packages_left(struct front *f, const struct sandbox *s);

/* packages_mounts() - For cell_hooks: the trees that were installed; for a fetcher those that it
 * may install. */
size_t packages_mounts(const struct front *f, bool fetcher, struct cell_spec *spec, int *fds);

/* packages_tell() - Before code is run: what the kernel can import, if that is not what it knows.
 */
void packages_tell(struct sandbox *s, struct kernel *kernel);
/* packages_request() - A kernel asks for some (install_request); it is answered when they are
 * there. */
void packages_request(struct sandbox *s, struct kernel *kernel, const json_t *m);
/* packages_env() - Variables for commands, a new object; NULL: none. */
json_t *packages_env(const struct sandbox *s);
/* packages_paths() - A new array of directories for one language. */
json_t *packages_paths(const struct sandbox *s, enum ecosystem eco);

/* packages_health() - Object: of each language the index, without credentials, and who named it. */
void packages_health(const struct front *f, struct json *j);
/* packages_json() - Array of what @s has: name, version, hash, language. */
void packages_json(const struct sandbox *s, struct json *j);

#endif
