/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_untar.c - Any bytes as an archive, by the rules of each store: nothing that leaves the tree
 * gets through.
 */
#include "archive/path.h"
#include "archive/tar_reader.h"
#include "base/err.h"
#include "fuzz.h"

static bool whole;

static void look_at_records(const struct tar_entry *en)
{
	struct tar_record r;
	size_t at = 0;

	while (tar_record_next(en->records, en->records_len, &at, &r) == 1)
		require(r.value + r.value_len <= en->records + en->records_len);
}

/* Without tar_path_check(), so that a fault of it shows. */
static bool is_tidy(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
	}
	return true;
}

static int on_entry(void *arg, const struct tar_entry *en, struct err *e)
{
	(void)arg;
	(void)e;
	require(en->type && strchr(whole ? "01256" : "025", en->type));
	require(en->mode <= 0777);
	look_at_records(en);
	require(tar_path_check(en->path, 48) == TAR_PATH_OK && is_tidy(en->path));
	require(strlen(en->path) < 1024 && strlen(en->link) < 1024);
	if (en->type == '1')
		require(tar_path_check(en->link, 48) == TAR_PATH_OK && is_tidy(en->link));
	if (en->type == '2')
		require(en->link[0] && (whole || tar_link_inside(en->path, en->link)));
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
	static const struct tar_sink sink = { on_entry, on_data, on_close };
	whole = size && data[0] & 1;
	const struct tar_rules rules = { .path_max = 1024,
					 .meta_max = 4096,
					 .depth_max = 48,
					 .max_bytes = 1 << 20,
					 .max_files = 100,
					 .kinds = whole ? "01256" : "025",
					 .links_inside = !whole,
					 .skips = size && data[0] & 2 };
	struct tar_reader t = { .rules = &rules };
	size_t piece = size ? 1 + data[0] * 7u : 1;
	uint64_t bytes = 0;
	struct err e = { 0 };
	int r = 0;

	for (size_t at = 0; r == 0 && at < size; at += piece)
		r = tar_feed(&t, &sink, &bytes, (const char *)data + at,
			     size - at < piece ? size - at : piece, &e);
	require(r <= 0 && bytes <= rules.max_bytes && (r == 0 || e.msg[0]));
	tar_reader_free(&t);
	return 0;
}
