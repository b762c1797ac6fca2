/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_files_client.c - Messages of a worker, in pieces of any size; and invalid ones.
 */
#include "client/files_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

/* All events, as text. */
static char told[8192];
static int refuse; /* what the sink returns for data */

static void say(const char *text, size_t len)
{
	size_t have = strlen(told);

	(void)snprintf(told + have, sizeof(told) - have, "%.*s", (int)len, text);
}

static int on_stat(void *arg, const struct files_stat *st, struct files_text name,
		   struct files_text target)
{
	char head[64];

	(void)arg;
	(void)snprintf(head, sizeof(head), "stat %u %llu ", st->type, (unsigned long long)st->size);
	say(head, strlen(head));
	say(name.data, name.len);
	say(">", 1);
	say(target.data, target.len);
	say(";", 1);
	return 0;
}

static int on_data(void *arg, const char *data, size_t len)
{
	(void)arg;
	say(data, len);
	return refuse;
}

static int on_event(void *arg, const struct files_event *ev, struct files_text name,
		    struct files_text from)
{
	char head[32];

	(void)arg;
	(void)snprintf(head, sizeof(head), "event %u ", ev->kind);
	say(head, strlen(head));
	say(name.data, name.len);
	say("<", 1);
	say(from.data, from.len);
	say(";", 1);
	return 0;
}

static int on_end(void *arg, const struct files_end *end, struct files_text where)
{
	char head[32];

	(void)arg;
	(void)snprintf(head, sizeof(head), "end %d ", end->error);
	say(head, strlen(head));
	say(where.data, where.len);
	return 0;
}

static const struct files_sink sink = { on_stat, on_data, on_event, on_end };

/* ---- frames ---------------------------------------------------------------------------------- */

static char bytes[256 << 10];
static size_t n_bytes;

static void put(uint32_t type, const void *fixed, size_t n, const char *text)
{
	struct files_frame head = { .type = type, .len = (uint32_t)(n + strlen(text)) };

	memcpy(bytes + n_bytes, &head, sizeof(head));
	if (n > 0)
		memcpy(bytes + n_bytes + sizeof(head), fixed, n);
	memcpy(bytes + n_bytes + sizeof(head) + n, text, strlen(text));
	n_bytes += sizeof(head) + head.len;
}

static int begin(void **state)
{
	(void)state;
	told[0] = '\0';
	n_bytes = 0;
	refuse = 0;
	return 0;
}

struct unit_fixture unit_fixture = { begin, NULL };

static int feed(size_t piece)
{
	struct files_parser p = { 0 };
	int r = 0;

	told[0] = '\0';
	for (size_t at = 0, n; r == 0 && at < n_bytes; at += n) {
		n = n_bytes - at < piece ? n_bytes - at : piece;
		r = files_feed(&p, &sink, NULL, bytes + at, n);
	}
	files_parser_free(&p);
	return r;
}

static void put_good(void)
{
	struct files_stat st = { .type = FILES_T_LINK, .size = 7, .name_len = 4, .target_len = 2 };
	struct files_event ev = { .kind = FILES_E_MOVED, .name_len = 3, .from_len = 1 };
	struct files_end end = { .error = ENOENT };

	put(FILES_F_STAT, &st, sizeof(st), "nameto");
	put(FILES_F_DATA, NULL, 0, "hello ");
	put(FILES_F_DATA, NULL, 0, "world;");
	put(FILES_F_EVENT, &ev, sizeof(ev), "newo");
	put(FILES_F_END, &end, sizeof(end), "where");
}

TEST(any_piece)
{
	put_good();
	for (size_t piece = 1; piece <= n_bytes; piece++) {
		assert_int_equal(feed(piece), 0);
		assert_string_equal(told, "stat 3 7 name>to;hello world;event 4 new<o;end 2 where");
	}
}

TEST(nothing_after_the_end)
{
	put_good();
	bytes[n_bytes++] = 0;
	assert_int_equal(feed(1), -EPROTO);
	assert_int_equal(feed(n_bytes), -EPROTO);
}

static void expect_nonsense(void)
{
	assert_int_equal(feed(n_bytes), -EPROTO);
	assert_int_equal(feed(3), -EPROTO);
	assert_string_equal(told, "");
	n_bytes = 0;
}

TEST(bad_heads)
{
	static const struct files_frame bad[] = {
		{ 0, 10 },
		{ FILES_F_MAX_, 10 },
		{ ~0u, 10 },
		{ FILES_F_DATA, 0 },
		{ FILES_F_DATA, FILES_FRAME_MAX + 1 },
		{ FILES_F_STAT, sizeof(struct files_stat) - 1 },
		{ FILES_F_STAT, FILES_TEXT_MAX + 1 },
		{ FILES_F_EVENT, 0 },
		{ FILES_F_END, sizeof(struct files_end) - 1 },
		{ FILES_F_END, ~0u },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(bytes, &bad[i], sizeof(bad[i]));
		n_bytes = sizeof(bad[i]);
		expect_nonsense();
	}
}

TEST(lengths_must_add_up)
{
	struct files_stat st = { .type = FILES_T_FILE, .name_len = 3, .target_len = 1 };
	struct files_event ev = { .kind = FILES_E_CREATED, .name_len = 3 };

	put(FILES_F_STAT, &st, sizeof(st), "abc");
	expect_nonsense();
	put(FILES_F_STAT, &st, sizeof(st), "abcde");
	expect_nonsense();
	st.name_len = ~0u;
	st.target_len = 5;
	put(FILES_F_STAT, &st, sizeof(st), "abcd");
	expect_nonsense();
	put(FILES_F_EVENT, &ev, sizeof(ev), "ab");
	expect_nonsense();
}

TEST(kinds_must_be_known)
{
	struct files_stat st = { .type = FILES_T_MAX_ };
	struct files_event ev = { .kind = 0 };
	struct files_end end = { .error = -1 };

	put(FILES_F_STAT, &st, sizeof(st), "");
	expect_nonsense();
	put(FILES_F_EVENT, &ev, sizeof(ev), "");
	expect_nonsense();
	ev.kind = FILES_E_MAX_;
	put(FILES_F_EVENT, &ev, sizeof(ev), "");
	expect_nonsense();
	put(FILES_F_END, &end, sizeof(end), "");
	expect_nonsense();
}

TEST(no_nul_in_names)
{
	struct files_stat st = { .type = FILES_T_FILE, .name_len = 3 };

	put(FILES_F_STAT, &st, sizeof(st), "abc");
	bytes[n_bytes - 2] = '\0';
	expect_nonsense();
}

TEST(a_sink_may_stop)
{
	refuse = -ECANCELED;
	put_good();
	assert_int_equal(feed(n_bytes), -ECANCELED);
	assert_string_equal(told, "stat 3 7 name>to;hello ");
}

TEST(heads_to_the_worker)
{
	assert_int_equal(files_head(5).type, FILES_F_DATA);
	assert_int_equal(files_head(5).len, 5);
	assert_int_equal(files_head(0).type, FILES_F_END);
	assert_int_equal(files_head(0).len, 0);
}
