/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_log.c - Every reader sees every event once and in order, or gets an error. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "front/http/stream_out.h"
#include "front/output/stream_log.h"

static struct stream_bank bank;

struct producer {
	struct stream_log *log;
	int drained, deserted;
};

static void on_drained(void *arg)
{
	((struct producer *)arg)->drained++;
}

static void on_deserted(void *arg)
{
	((struct producer *)arg)->deserted++;
}

static const struct stream_ops ops = { .drained = on_drained, .deserted = on_deserted };

static struct producer *begin(void)
{
	struct producer *p = calloc(1, sizeof(*p));

	bank.max = STREAM_BANK_BYTES;
	p->log = stream_log_new(&bank, &ops, p);
	assert_non_null(p->log);
	return p;
}

static void end(struct producer *p)
{
	stream_log_end(p->log);
	stream_log_unref(p->log);
	free(p);
	assert_int_equal(bank.bytes, 0);
	assert_null(bank.first);
	assert_null(bank.last);
}

static void put(struct stream_log *l, const char *text)
{
	stream_log_append(l, "stdout", text, strlen(text));
}

/* An event of @len bytes. */
static void put_large(struct stream_log *l, size_t len)
{
	char *text = malloc(len);

	memset(text, 'x', len);
	stream_log_append(l, "stdout", text, len);
	free(text);
}

/* A reader that reads when it is notified, or only when asked. */
struct watcher {
	struct stream_reader r;
	uint64_t seen; /* the last id */
	size_t n;
	bool lost, lazy;
	int wakes;
	struct buf text;
};

static void read_some(struct watcher *w, size_t most)
{
	const struct stream_event *ev;

	while (most-- > 0 && (ev = stream_reader_next(&w->r, &w->lost))) {
		assert_int_equal(ev->id, w->seen + 1);
		w->seen = ev->id;
		w->n++;
		(void)buf_append(&w->text, ev->json, ev->len);
	}
}

static void on_wake(struct stream_reader *r)
{
	struct watcher *w = r->arg;

	w->wakes++;
	if (!w->lazy)
		read_some(w, SIZE_MAX);
}

static int attach(struct watcher *w, struct stream_log *l, uint64_t cursor)
{
	w->r.wake = on_wake;
	w->r.arg = w;
	w->seen = cursor;
	w->text.max = 64u << 20;
	return stream_reader_attach(&w->r, l, cursor);
}

/* ---- order and memory ---------------------------------------------------------------------- */

TEST(ids_count_from_one)
{
	struct producer *p = begin();
	struct watcher w = { 0 };

	assert_int_equal(stream_log_last(p->log), 0);
	assert_int_equal(attach(&w, p->log, 0), 0);
	put(p->log, "a");
	put(p->log, "b");
	assert_int_equal(w.seen, 2);
	assert_int_equal(stream_log_first(p->log), 1);
	assert_int_equal(stream_log_last(p->log), 2);
	stream_log_end(p->log);
	put(p->log, "too late");
	assert_int_equal(stream_log_last(p->log), 2);
	assert_string_equal(buf_str(&w.text), "ab");
	assert_int_equal(w.wakes, 3);
	stream_reader_detach(&w.r);
	stream_reader_detach(&w.r);
	assert_int_equal(p->deserted, 0); /* after the end it does not matter */
	buf_free(&w.text);
	end(p);
}

TEST(a_late_reader_gets_all)
{
	struct producer *p = begin();
	struct watcher early = { 0 }, late = { 0 };

	assert_int_equal(attach(&early, p->log, 0), 0);
	for (int i = 0; i < 100; i++)
		put(p->log, "x");
	assert_int_equal(attach(&late, p->log, 40), 0);
	read_some(&late, SIZE_MAX);
	assert_int_equal(late.n, 60);
	put(p->log, "y");
	assert_int_equal(late.seen, 101);
	assert_int_equal(early.n, 101);
	assert_int_equal(stream_log_readers(p->log), 2);
	stream_reader_detach(&early.r);
	assert_int_equal(p->deserted, 0);
	stream_reader_detach(&late.r);
	assert_int_equal(p->deserted, 1);
	buf_free(&early.text);
	buf_free(&late.text);
	end(p);
}

TEST(the_oldest_go_without_a_reader)
{
	struct producer *p = begin();
	struct watcher w = { 0 };

	stream_log_limit(p->log, 1u << 20, 100);
	for (int i = 0; i < 250; i++)
		put(p->log, "x");
	assert_int_equal(stream_log_first(p->log), 151);
	assert_int_equal(stream_log_last(p->log), 250);
	assert_int_equal(attach(&w, p->log, 149), -ESTALE);
	assert_int_equal(attach(&w, p->log, 251), -ERANGE);
	assert_int_equal(attach(&w, p->log, 150), 0);
	read_some(&w, SIZE_MAX);
	assert_int_equal(w.n, 100);
	stream_reader_detach(&w.r);
	/* And by bytes. */
	stream_log_limit(p->log, 10000, 100);
	for (int i = 0; i < 20; i++)
		put_large(p->log, 1000);
	assert_true(bank.bytes <= 10000);
	assert_int_equal(stream_log_last(p->log), 270);
	assert_in_range(stream_log_first(p->log), 260, 264);
	/* One that is larger than everything is kept, alone. */
	put_large(p->log, 50000);
	assert_int_equal(stream_log_first(p->log), 271);
	buf_free(&w.text);
	end(p);
}

TEST(an_attached_reader_loses_nothing)
{
	struct producer *p = begin();
	struct watcher w = { .lazy = true };

	stream_log_limit(p->log, 10000, 10);
	assert_int_equal(attach(&w, p->log, 0), 0);
	for (int i = 0; i < 500; i++)
		put_large(p->log, 1000);
	assert_int_equal(stream_log_first(p->log), 1);
	assert_true(stream_log_congested(p->log));
	read_some(&w, SIZE_MAX);
	assert_int_equal(w.n, 500);
	assert_false(w.lost);
	assert_int_equal(p->drained, 1);
	assert_false(stream_log_congested(p->log));
	/* Events that it has read are not kept beyond the bounds, at the latest when it goes. */
	stream_reader_detach(&w.r);
	assert_true(bank.bytes <= 10000);
	assert_int_equal(stream_log_last(p->log), 500);
	buf_free(&w.text);
	end(p);
}

TEST(a_reader_far_behind_is_cut_off)
{
	struct producer *p = begin();
	struct watcher w = { .lazy = true };

	assert_int_equal(attach(&w, p->log, 0), 0);
	for (size_t n = 0; n <= STREAM_HARD_BYTES; n += 4u << 20)
		put_large(p->log, 4u << 20);
	assert_true(bank.bytes <= STREAM_HARD_BYTES);
	read_some(&w, 1);
	assert_true(w.lost);
	assert_int_equal(w.n, 0);
	stream_reader_detach(&w.r);
	end(p);
}

TEST(the_producer_waits_for_the_slowest)
{
	struct producer *p = begin();
	struct watcher fast = { 0 }, slow = { .lazy = true };

	assert_int_equal(attach(&fast, p->log, 0), 0);
	put_large(p->log, STREAM_BEHIND_BYTES + 1);
	assert_false(stream_log_congested(p->log));
	assert_int_equal(attach(&slow, p->log, 1), 0);
	put_large(p->log, STREAM_BEHIND_BYTES / 2);
	assert_false(stream_log_congested(p->log));
	put_large(p->log, STREAM_BEHIND_BYTES);
	assert_true(stream_log_congested(p->log));
	read_some(&slow, 1);
	assert_int_equal(p->drained, 0);
	/* Going away helps as well as reading. */
	stream_reader_detach(&slow.r);
	assert_int_equal(p->drained, 1);
	assert_false(stream_log_congested(p->log));
	stream_reader_detach(&fast.r);
	buf_free(&fast.text);
	buf_free(&slow.text);
	end(p);
}

TEST(old_logs_make_room)
{
	struct stream_log *old[4];
	struct watcher w = { .lazy = true };

	bank.max = 100000;
	for (size_t i = 0; i < 4; i++) {
		old[i] = stream_log_new(&bank, NULL, NULL);
		put_large(old[i], 20000);
		stream_log_end(old[i]);
	}
	assert_int_equal(attach(&w, old[0], 0), 0);
	struct stream_log *l = stream_log_new(&bank, NULL, NULL);

	put_large(l, 50000);
	assert_true(bank.bytes <= bank.max);
	assert_int_equal(stream_log_first(old[0]), 1); /* is being read */
	assert_int_equal(stream_log_first(old[1]), 2);
	assert_int_equal(stream_log_first(old[3]), 1);
	read_some(&w, SIZE_MAX);
	assert_int_equal(w.n, 1);
	stream_reader_detach(&w.r);
	for (size_t i = 0; i < 4; i++)
		stream_log_unref(old[i]);
	stream_log_unref(l);
	stream_log_unref(NULL);
	assert_int_equal(bank.bytes, 0);
	buf_free(&w.text);
}

/* ---- what readers do when they are woken --------------------------------------------------- */

struct quitter {
	struct stream_reader r;
	struct stream_reader *with; /* takes this one along */
	int wakes;
};

static void quit(struct stream_reader *r)
{
	struct quitter *q = r->arg;

	q->wakes++;
	stream_reader_detach(r);
	if (q->with)
		stream_reader_detach(q->with);
}

TEST(readers_may_leave_when_woken)
{
	struct producer *p = begin();
	struct quitter q[3] = { 0 };
	struct watcher w = { 0 };

	for (size_t i = 0; i < 3; i++) {
		q[i].r = (struct stream_reader){ .wake = quit, .arg = &q[i] };
		assert_int_equal(stream_reader_attach(&q[i].r, p->log, 0), 0);
	}
	q[2].with = &q[1].r;
	q[1].with = &q[2].r;
	assert_int_equal(attach(&w, p->log, 0), 0);
	put(p->log, "x");
	assert_int_equal(q[0].wakes, 1);
	assert_int_equal(q[1].wakes + q[2].wakes, 1);
	assert_int_equal(w.n, 1);
	assert_int_equal(stream_log_readers(p->log), 1);
	stream_reader_detach(&w.r);
	buf_free(&w.text);
	end(p);
}

/* Each leaves when it is woken, and takes along the one that is next in the list. */
TEST(readers_may_remove_the_next_one)
{
	struct producer *p = begin();
	struct quitter q[6] = { 0 };

	for (size_t i = 0; i < 6; i++) {
		q[i].r = (struct stream_reader){ .wake = quit, .arg = &q[i] };
		q[i].with = i > 0 ? &q[i - 1].r : NULL;
		assert_int_equal(stream_reader_attach(&q[i].r, p->log, 0), 0);
	}
	put(p->log, "x");
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(q[i].wakes, i % 2);
	assert_int_equal(stream_log_readers(p->log), 0);
	assert_int_equal(p->deserted, 1);
	end(p);
}

/* The first that is woken ends the log: all are woken once more, and none a third time. */
struct ender {
	struct stream_reader r;
	struct stream_log *log;
	int wakes;
};

static void end_log(struct stream_reader *r)
{
	struct ender *e = r->arg;

	e->wakes++;
	stream_log_end(e->log);
}

TEST(a_woken_reader_may_end_the_log)
{
	struct producer *p = begin();
	struct ender e[3] = { 0 };

	for (size_t i = 0; i < 3; i++) {
		e[i].log = p->log;
		e[i].r = (struct stream_reader){ .wake = end_log, .arg = &e[i] };
		assert_int_equal(stream_reader_attach(&e[i].r, p->log, 0), 0);
	}
	put(p->log, "x");
	assert_int_equal(e[2].wakes, 2);
	assert_int_equal(e[1].wakes, 1);
	assert_int_equal(e[0].wakes, 1);
	for (size_t i = 0; i < 3; i++)
		stream_reader_detach(&e[i].r);
	end(p);
}

TEST(a_log_has_few_readers)
{
	struct producer *p = begin();
	struct watcher w[STREAM_READERS_MAX + 1] = { 0 };

	for (size_t i = 0; i < STREAM_READERS_MAX; i++)
		assert_int_equal(attach(&w[i], p->log, 0), 0);
	assert_int_equal(attach(&w[STREAM_READERS_MAX], p->log, 0), -EBUSY);
	assert_null(w[STREAM_READERS_MAX].r.log);
	put(p->log, "x");
	for (size_t i = 0; i < STREAM_READERS_MAX; i++)
		assert_int_equal(w[i].wakes, 1);
	assert_int_equal(w[STREAM_READERS_MAX].wakes, 0);
	stream_reader_detach(&w[7].r); /* its place is free again */
	assert_int_equal(attach(&w[STREAM_READERS_MAX], p->log, 0), 0);
	for (size_t i = 0; i <= STREAM_READERS_MAX; i++) {
		stream_reader_detach(&w[i].r);
		buf_free(&w[i].text);
	}
	end(p);
}

TEST(a_reader_keeps_the_log_alive)
{
	struct producer *p = begin();
	struct watcher w = { .lazy = true };

	assert_int_equal(attach(&w, p->log, 0), 0);
	put(p->log, "kept");
	stream_log_end(p->log);
	stream_log_unref(p->log);
	read_some(&w, SIZE_MAX);
	assert_string_equal(buf_str(&w.text), "kept");
	assert_true(stream_log_ended(w.r.log));
	stream_reader_detach(&w.r);
	assert_int_equal(bank.bytes, 0);
	buf_free(&w.text);
	free(p);
}

/*
 * Exactly once: clients come and go at random while events are written, each going on where it was.
 * Together they saw all that was written, whatever the sizes, cuts and bounds were.
 */
TEST(resume_exactly_once)
{
	for (unsigned int round = 0; round < 200; round++) {
		struct producer *p = begin();
		struct watcher w[3] = { 0 };
		struct buf all = BUF_INIT(16u << 20);
		unsigned int seed = round;

		for (size_t i = 0; i < 3; i++)
			w[i].lazy = true;
		for (int step = 0; step < 300; step++) {
			struct watcher *c = &w[rand_r(&seed) % 3];
			char text[32];

			switch (rand_r(&seed) % 5) {
			case 0:
			case 1:
				(void)snprintf(text, sizeof(text), "<%d:%.*s>", step,
					       rand_r(&seed) % 20, "xxxxxxxxxxxxxxxxxxxx");
				put(p->log, text);
				(void)buf_puts(&all, text);
				break;
			case 2:
				if (!c->r.log)
					assert_int_equal(attach(c, p->log, c->seen), 0);
				break;
			case 3:
				read_some(c, (size_t)rand_r(&seed) % 4);
				break;
			default:
				stream_reader_detach(&c->r);
			}
		}
		stream_log_end(p->log);
		for (size_t i = 0; i < 3; i++) {
			if (!w[i].r.log)
				assert_int_equal(attach(&w[i], p->log, w[i].seen), 0);
			read_some(&w[i], SIZE_MAX);
			assert_false(w[i].lost);
			assert_string_equal(buf_str(&w[i].text), buf_str(&all));
			stream_reader_detach(&w[i].r);
			buf_free(&w[i].text);
		}
		buf_free(&all);
		end(p);
	}
}

/* The same with a small ring: then a client that was away too long is told so, and never sees a
 * gap. */
TEST(resume_or_refusal)
{
	int told = 0;

	for (unsigned int round = 0; round < 200; round++) {
		struct producer *p = begin();
		struct watcher w = { .lazy = true };
		unsigned int seed = round;

		stream_log_limit(p->log, 1u << 20, 20);
		for (int step = 0; step < 300; step++) {
			if (rand_r(&seed) % 2) {
				put(p->log, "event");
			} else if (w.r.log) {
				read_some(&w, (size_t)rand_r(&seed) % 8);
				assert_false(w.lost); /* attached: never */
				if (rand_r(&seed) % 8 == 0)
					stream_reader_detach(&w.r);
			} else if (rand_r(&seed) % 8 == 0) {
				bool gone = w.seen + 1 < stream_log_first(p->log);

				assert_int_equal(attach(&w, p->log, w.seen), gone ? -ESTALE : 0);
				told += gone;
				if (gone) /* begins anew with what there is */
					assert_int_equal(attach(&w, p->log,
								stream_log_first(p->log) - 1),
							 0);
			}
		}
		stream_reader_detach(&w.r);
		buf_free(&w.text);
		end(p);
	}
	assert_true(told > 0);
}

/* A buffer that is taken over is like a copied one, whatever its size, and is accounted for with
 * all of its memory. */
TEST(taken_over)
{
	struct producer *p = begin();
	static char text[70000];
	bool lost;

	memset(text, 'y', sizeof(text));
	struct stream_reader r = { .wake = NULL };

	for (size_t len = 1; len <= sizeof(text); len = len * 3 + 1) {
		_buf_ struct buf b = BUF_INIT(1u << 20);
		uint64_t before = bank.bytes;

		(void)buf_reserve(&b, 200000);
		(void)buf_append(&b, text, len);
		stream_log_take(p->log, "stdout", &b);
		assert_int_equal(b.len, 0);
		assert_in_range(bank.bytes - before, len, 2 * len + 200);
	}
	assert_int_equal(stream_reader_attach(&r, p->log, 0), 0);
	for (size_t len = 1; len <= sizeof(text); len = len * 3 + 1) {
		const struct stream_event *ev = stream_reader_next(&r, &lost);

		assert_non_null(ev);
		assert_int_equal(ev->len, len);
		assert_memory_equal(ev->json, text, len);
		assert_int_equal(ev->json[len], 0);
	}
	stream_reader_detach(&r);
	end(p);
}

/* ---- on the wire --------------------------------------------------------------------------- */

static void check_line(const char *json, const char *expected)
{
	struct stream_event ev = {
		.id = 7, .type = "stdout", .len = strlen(json), .json = (char *)json
	};
	struct buf out = BUF_INIT(4096);

	stream_out_line(&out, &ev);
	assert_string_equal(buf_str(&out), expected);
	buf_free(&out);
}

TEST(lines)
{
	check_line("{\"data\":\"x\"}", "{\"id\":7,\"type\":\"stdout\",\"data\":\"x\"}\n");
	check_line("{}", "{\"id\":7,\"type\":\"stdout\"}\n");
}
