/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.h - Whether this process is in a container, and what the container's engine withholds
 * from the cells that it shall make.
 *
 * An engine (Docker, Podman, ...) gives a container few capabilities, filters system calls, covers
 * parts of /proc and mounts cgroups read-only. Cells need some of that. Root of a container takes
 * back a part by itself, for our own processes alone: container_enter(). Only the person who starts
 * the container can give the rest: container_check() names it, as the options of the engine.
 */
#ifndef CAISSON_CELL_CONTAINER_H
#define CAISSON_CELL_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* The options for a filter that lets cells be made, and for a security module that does. */
#define CONTAINER_FILTER "--security-opt seccomp=dist/container/seccomp.json"
#define CONTAINER_UNCONFINED "--security-opt apparmor=unconfined"
#define CONTAINER_OPTIONS_MAX 400

/* container_engine() - "docker", "podman", or "container" for others; NULL: this is no container,
 * as far as it shows. */
const char *container_engine(void);

/*
 * container_enter() - In a container, as root with CAP_SYS_ADMIN, where the engine covered parts of
 * /proc or mounted our cgroups read-only: get a mount namespace of our own without that. Elsewhere
 * nothing.
 *
 * For the first process of ours, before it opens files for cells: the warden, which inherits the
 * namespace, cannot clone mounts of another one. A step that the engine refuses is left out:
 * container_check() or the first cell reports it.
 */
int container_enter(struct err *e);

/* The rights that the engine leaves, as this process sees them. */
struct container {
	const char *engine;
	bool root;         /* in the container */
	bool whole_ids;    /* all ids of the machine exist: no user namespace is around us */
	uint64_t caps;     /* permitted */
	bool call_denied;  /* a system call that cells need */
	bool mount_denied; /* by a security module */
	bool proc_covered;
	bool cgroup_of_machine; /* the v2 tree that we see is the whole machine's */
	char label[128];        /* of the security module; "" without one */
};

/* container_look() - Fill in all but the engine. Costs a short-lived process, which tries in
 * namespaces of its own. */
void container_look(struct container *ret);

/* container_options() - The options that are missing, separated by spaces; "" if none is.
 * Pure. Return: @ret. */
char *container_options(const struct container *c, char *ret, size_t size);

/* container_missing() - Both: whether options are missing, which are then in @ret. */
bool container_missing(char *ret, size_t size);

/* container_check() - 0 where nothing is missing, and outside of containers. -EPERM: the message
 * has the options. */
int container_check(struct err *e);

#endif
