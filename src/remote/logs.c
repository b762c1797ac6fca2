/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.c - `caisson logs`: what was said in a sandbox lately.
 *
 * The daemon keeps the last bytes of it and says how many there ever were. Following means to ask
 * again: the difference of the two numbers is how much of the answer is new.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/list.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/verbs.h"

#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 1000

static int fetch(struct session *s, bool whole, struct api_answer *answer, uint64_t *ret_bytes)
{
	_buf_ struct buf path = BUF_INIT(1024);

	url_sandbox(&path, s->o.rest[0], "/logs");
	if (!whole && options_given(&s->o.parsed, "--tail"))
		url_query_uint(&path, "tail", s->o.tail);
	struct api_call c = { .method = "GET",
			      .path = buf_str(&path),
			      .accept = "text/plain",
			      .header = "X-Log-Bytes" };
	int r = api_call(&s->api, &c, answer, &s->problem);

	*ret_bytes = strtoull(answer->header, NULL, 10);
	return r;
}

/* As it was written: this is the output of programs, and may be piped to a file. */
static int put(struct session *s, const char *data, size_t len)
{
	struct err e = { 0 };
	int r = fd_write_all(STDOUT_FILENO, data, len);

	if (r == 0)
		return 0;
	s->code = 128 + SIGPIPE; /* a reader that has seen enough */
	if (r != -EPIPE) {
		(void)err_set(&e, r, "write to standard output");
		session_fail_err(s, &e);
	}
	return -1;
}

static bool is_running(struct session *s)
{
	_buf_ struct buf path = BUF_INIT(1024);

	url_sandbox(&path, s->o.rest[0], "");
	json_t *v = api_json(&s->api, "GET", buf_str(&path), NULL, &s->problem);
	const char *state = list_text(v, "state");
	bool running = *state == 'r';

	json_decref(v);
	return running;
}

/* Until the sandbox is gone or does not run any more. */
static void follow(struct session *s, struct api_answer *answer, uint64_t seen)
{
	int pause = PAUSE_MIN_MS;

	for (;;) {
		struct pollfd reader = { .fd = STDOUT_FILENO };
		uint64_t bytes;
		bool running = is_running(s);

		if (fetch(s, true, answer, &bytes) < 0) {
			if (s->problem.status != 404)
				session_fail(s);
			return;
		}
		uint64_t fresh = bytes > seen ? bytes - seen : 0;

		if (fresh > answer->body.len) {
			(void)fprintf(stderr, "caisson: %llu bytes went by unseen\n",
				      (unsigned long long)(fresh - answer->body.len));
			fresh = answer->body.len;
		}
		if (put(s, buf_str(&answer->body) + answer->body.len - fresh, (size_t)fresh) < 0 ||
		    !running)
			return;
		seen = bytes;
		pause = fresh ? PAUSE_MIN_MS : pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
		/* A pipe whose reader left says so without being written to. */
		if (poll(&reader, 1, pause) > 0 && reader.revents & POLLERR) {
			s->code = 128 + SIGPIPE;
			return;
		}
	}
}

static void print_object(const struct session *s, const struct buf *b)
{
	json_t *text = json_stringn(buf_str(b), b->len);
	json_t *root = json_pack("{s:s}", "name", s->o.rest[0]);

	/* What is no UTF-8 has no place in JSON. */
	(void)json_object_set_new(root, "logs", text ? text : json_null());
	session_json(root);
	json_decref(root);
}

int verb_logs(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_LOGS,
		.usage = "logs [-f] [--tail N] NAME",
		.text = "Shows what code and commands in the sandbox wrote lately (the last 64 KiB), as it was\n"
			"written. With -f it goes on until the sandbox ends.\n",
		.min = 1,
		.max = 1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		struct api_answer answer = { 0 };
		struct err e = { 0 };
		uint64_t bytes;

		if (s.o.json && s.o.follow) {
			(void)err_say(&e, -EINVAL, "--json and --follow do not go together");
			session_fail_err(&s, &e);
		} else if (place_check_name(s.o.rest[0], &e) < 0) {
			session_fail_err(&s, &e);
		} else if (fetch(&s, false, &answer, &bytes) < 0) {
			session_fail(&s);
		} else if (s.o.json) {
			print_object(&s, &answer.body);
		} else if (put(&s, buf_str(&answer.body), answer.body.len) == 0 && s.o.follow) {
			follow(&s, &answer, bytes);
		}
		api_answer_free(&answer);
	}
	return session_end(&s);
}
