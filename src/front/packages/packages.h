/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packages.h - Packages that sandboxes can import beyond those of their image (docs/packages.md).
 *
 * Off when there is neither an index (--pip-index none, --npm-registry none) nor a directory of
 * packages: then there is no package store, cells have no further mount, and every request is
 * refused with the name of the missing option.
 */
#ifndef CAISSON_FRONT_PACKAGES_PACKAGES_H
#define CAISSON_FRONT_PACKAGES_PACKAGES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/packages/package_store.h"
#include "front/packages/trees.h"
#include "net/loop.h"

struct cell_spec;
struct err;
struct install;
struct json;
struct kernel;
struct packages;
struct sandbox;

#define PACKAGES_PATH "/packages"   /* of trees, in a cell */
#define PACKAGES_DIR "/package-dir" /* of --package-dir, in a fetcher's cell */
#define PACKAGES_RATES 64u

/* How often packages were fetched for an owner in this hour. */
struct package_rate {
	uint64_t owner; /* hash; 0: empty */
	uint64_t since_ns;
	uint64_t n;
};

struct packages {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct sandboxes *sandboxes;
	struct secrets *secrets;   /* keys of package indexes */
	int store_fd;              /* trees, to be mounted in cells; -1: off */
	int dir_fd;                /* --package-dir; -1: none */
	struct service_link store; /* the package store */
	struct trees trees;
	json_t *pins; /* NULL: none */
	struct install *installs;
	size_t n_installs;
	struct timer tidy;
	struct package_rate rates[PACKAGES_RATES];
};

/* packages_open() - Before the jail. packages_start() - In it, when the sandboxes of former fronts
 * are known. */
int packages_open(struct packages *p, struct err *e);
int packages_start(struct packages *packages, struct err *e);
bool packages_on(const struct packages *packages);
/* packages_of() - Those that @s is offered. */
struct packages *packages_of(const struct sandbox *s);

/* packages_tidy_soon() - Trees were added, or are used no more: check the limits. */
void packages_tidy_soon(struct packages *packages);
/* packages_left() - A sandbox is gone for good. */
void packages_left(struct packages *packages, const struct sandbox *s);

/* packages_mounts() - For cell_hooks: the trees; for a fetcher the directory of --package-dir. */
size_t packages_mounts(const struct packages *p, bool fetcher, struct cell_spec *spec, int *fds);

/* packages_tell() - Before code runs: what the kernel can import, if that has changed. */
void packages_tell(struct sandbox *s, struct kernel *kernel);
/* packages_send() - A message to the kernel; takes @message, which may be NULL. */
void packages_send(struct kernel *kernel, json_t *message);
/* packages_request() - A kernel requests packages (install_request); the response follows later. */
void packages_request(struct sandbox *s, struct kernel *kernel, const json_t *m);
/* packages_paths() - The directories of modules of one language, the newest first; a new array. */
json_t *packages_paths(const struct sandbox *s, enum ecosystem eco);
/* packages_env() - Variables for commands, a new object; NULL: none. */
json_t *packages_env(const struct sandbox *s);
/* packages_health() - Object: of each language the index, without credentials, and its origin. */
void packages_health(const struct packages *packages, struct json *j);
/* packages_json() - Array of the packages that were installed for @s, and those of its image that
 * they use: closure_members(), language, request, active. */
void packages_json(const struct sandbox *s, struct json *j);

#endif
