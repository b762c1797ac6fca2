/* SPDX-License-Identifier: Apache-2.0 */
/* store_kit.h - A directory for each test, and a store in it. */
#ifndef CAISSON_TESTS_STORE_KIT_H
#define CAISSON_TESTS_STORE_KIT_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "store/store.h"

static char top[UNIT_DIR_MAX];
static int dir = -1;
static struct err err;

static inline int kit_setup(void **unused)
{
	(void)unused;
	if (!unit_dir_make(top, true))
		return -1;
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static inline int kit_teardown(void **unused)
{
	(void)unused;
	dir = fd_close(dir);
	return unit_dir_remove(top);
}

/* The store in the directory, which must be good. */
static inline struct store *kit_open(void)
{
	struct store_files f;
	struct store *s = NULL;

	err = (struct err){ 0 };
	if (store_files_open(dir, &f, &err) < 0 || store_check(&f, &err) < 0 ||
	    store_open(&f, &s, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(f.db, -1);
	return s;
}

static inline struct store_sandbox kit_sandbox(const char *id, const char *owner, const char *name)
{
	return (struct store_sandbox){
		.id = id,
		.owner = owner,
		.name = name,
		.spec = "{\"memory_mib\":64}",
		.labels = "{\"a\":\"b\"}",
		.reason = "",
		.cell = "cell-7",
		.state = STORE_RUNNING,
		.epoch = 3,
		.executions = 12,
		.created_at = 1700000000000,
		.used_at = 1700000001000,
		.expires_at = 0,
	};
}

static inline int kit_count_one(const struct store_sandbox *b, void *arg)
{
	(void)b;
	++*(int *)arg;
	return 0;
}

static inline int kit_count(struct store *s)
{
	int n = 0;

	assert_int_equal(store_sandbox_each(s, kit_count_one, &n, &err), 0);
	return n;
}

#endif
