/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_untar.c - Any bytes as an archive for the pantry: nothing that leaves the tree gets through. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "package_store/untar.h"

static void require(int ok)
{
	if (!ok)
		abort();
}

static bool whole;

static void look_at_records(const struct untar_entry *en)
{
	struct tar_record r;
	size_t at = 0;

	while (tar_record_next(en->records, en->records_len, &at, &r) == 1)
		require(r.value + r.value_len <= en->records + en->records_len);
}

static int on_entry(void *arg, const struct untar_entry *en, struct err *e)
{
	(void)arg;
	(void)e;
	require(en->type && strchr(whole ? "01256" : "025", en->type));
	require(en->mode <= 0777);
	look_at_records(en);
	if (en->type == '1')
		require(en->link[0] && en->link[0] != '/' && !strstr(en->link, "../"));
	require(en->path[0] && en->path[0] != '/' && !strstr(en->path, "//"));
	for (const char *p = en->path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		require(strncmp(p, "../", 3) != 0 && strcmp(p, "..") != 0);
	if (en->type == '2')
		require(en->link[0] && (whole || en->link[0] != '/'));
	return 0;
}

static int on_data(void *arg, const char *data, size_t len, struct err *e)
{
	(void)data;
	(void)e;
	*(uint64_t *)arg += len;
	return 0;
}

static int on_close(void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct untar_sink sink = { on_entry, on_data, on_close };
	whole = size && data[0] & 1;
	struct untar u = { .max_bytes = 1 << 20, .max_files = 100, .whole = whole };
	size_t piece = size ? 1 + data[0] * 7u : 1;
	uint64_t bytes = 0;
	struct err e = { 0 };
	int r = 0;

	for (size_t at = 0; r == 0 && at < size; at += piece)
		r = untar_feed(&u, &sink, &bytes, (const char *)data + at,
			       size - at < piece ? size - at : piece, &e);
	require(r <= 0 && bytes <= u.max_bytes && (r == 0 || e.msg[0]));
	untar_free(&u);
	return 0;
}
