/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.c - `caisson logs`: the latest output of code and commands in a sandbox.
 *
 * The daemon keeps the last bytes, and counts all that there ever were. Following means to ask
 * again: the difference of two counts is how much of the answer is new.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/list.h"
#include "remote/verb.h"

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
static bool put(struct session *s, const char *data, size_t len)
{
	struct err e = { 0 };
	int r = fd_write_all(STDOUT_FILENO, data, len);

	if (r == 0)
		return true;
	s->code = 128 + SIGPIPE; /* a reader that has seen enough */
	if (r != -EPIPE) {
		(void)err_set(&e, r, "write to standard output");
		(void)problem_ours(&s->problem, &e);
		session_fail(s);
	}
	return false;
}

static bool is_running(struct session *s)
{
	json_t *v = api_sandbox(&s->api, "GET", s->o.rest[0], "", NULL, &s->problem);
	bool running = strcmp(list_text(v, "state"), "running") == 0;

	json_decref(v);
	return running;
}

/* Until the sandbox is gone or does not run any more. */
static int follow(struct session *s, struct api_answer *answer, uint64_t seen)
{
	int pause = PAUSE_MIN_MS;

	for (;;) {
		struct pollfd reader = { .fd = STDOUT_FILENO };
		uint64_t bytes;
		bool running = is_running(s);

		if (fetch(s, true, answer, &bytes) < 0)
			return s->problem.status == 404 ? 0 : -1;
		uint64_t fresh = bytes > seen ? bytes - seen : 0;

		if (fresh > answer->body.len) {
			(void)fprintf(stderr, "caisson: %llu bytes were missed\n",
				      (unsigned long long)(fresh - answer->body.len));
			fresh = answer->body.len;
		}
		if (!put(s, buf_str(&answer->body) + answer->body.len - fresh, (size_t)fresh) ||
		    !running)
			return 0;
		seen = bytes;
		pause = fresh ? PAUSE_MIN_MS : pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
		/* poll() reports a pipe whose reader left, without a write to it. */
		if (poll(&reader, 1, pause) > 0 && reader.revents & POLLERR) {
			s->code = 128 + SIGPIPE;
			return 0;
		}
	}
}

static void print_object(const struct session *s, const struct buf *b)
{
	json_t *text = json_stringn(buf_str(b), b->len);
	json_t *root = json_pack("{s:s}", "name", s->o.rest[0]);

	/* JSON cannot hold bytes that are not UTF-8. */
	(void)json_object_set_new(root, "logs", text ? text : json_null());
	session_json(root);
	json_decref(root);
}

int remote_logs(struct session *s)
{
	struct api_answer answer = { 0 };
	uint64_t bytes;
	int r;

	if (s->o.json && s->o.follow)
		return problem_wrong(&s->problem, "--json and --follow do not go together");
	r = fetch(s, false, &answer, &bytes);
	if (r == 0 && s->o.json)
		print_object(s, &answer.body);
	else if (r == 0 && put(s, buf_str(&answer.body), answer.body.len) && s->o.follow)
		r = follow(s, &answer, bytes);
	api_answer_free(&answer);
	return r;
}
