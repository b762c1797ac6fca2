/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - From an answer of the daemon to a message for a person. */
#include "remote/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "client/fail.h"
#include "remote/table.h"
#include "remote/wording.h"

#define LINE_MAX_BYTES 8192u

int problem_say(struct problem *p, int exit_code, const char *code, const char *fmt, ...)
{
	va_list ap;

	*p = (struct problem){ .exit_code = exit_code };
	(void)snprintf(p->code, sizeof(p->code), "%s", code);
	va_start(ap, fmt);
	(void)vsnprintf(p->message, sizeof(p->message), fmt, ap);
	va_end(ap);
	return -1;
}

void problem_hint(struct problem *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(p->hint, sizeof(p->hint), fmt, ap);
	va_end(ap);
}

int problem_ours(struct problem *p, const struct err *e)
{
	return problem_say(p, EXIT_OURS, fail_code(e), "%s", e->msg);
}

int problem_exit_code(unsigned int status)
{
	static const struct {
		unsigned int status;
		int exit_code;
	} kinds[] = {
		{ 401, EXIT_AUTH },    { 403, EXIT_AUTH },     { 421, EXIT_AUTH },
		{ 404, EXIT_MISSING }, { 410, EXIT_MISSING },  { 409, EXIT_CONFLICT },
		{ 429, EXIT_BUSY },    { 412, EXIT_CONFLICT }, { 503, EXIT_BUSY },
		{ 501, EXIT_INVALID },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].status == status)
			return kinds[i].exit_code;
	return status >= 400 && status < 500 ? EXIT_INVALID : EXIT_OTHER;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* The remedy in terms of this command, instead of the daemon's in terms of HTTP. */
static void own_hint(struct problem *p)
{
	if (p->status == 401 && strstr(p->message, "without a token only"))
		problem_hint(
			p, "call as that user, or have the daemon started with --token-file FILE");
	else if (p->status == 401 && strstr(p->message, "has no tokens"))
		problem_hint(
			p,
			"leave out --token-file, and unset CAISSON_TOKEN_FILE and CAISSON_TOKEN");
	else if (p->status == 401)
		problem_hint(
			p, "put a token of the daemon in a file of mode 600 and name it: "
			   "--token-file FILE, CAISSON_TOKEN_FILE, or the token in CAISSON_TOKEN");
	else if (strcmp(p->code, "no_such_sandbox") == 0)
		problem_hint(
			p,
			"'caisson ps -a' lists those there are, 'caisson create NAME' makes one; a "
			"sandbox that was idle for too long has ended");
	else if (strcmp(p->code, "sandbox_stopped") == 0)
		problem_hint(p, "'caisson rm NAME' frees the name, then 'caisson create NAME'");
	else if (p->status == 404 && strcmp(p->code, "not_found") == 0)
		problem_hint(
			p, "this daemon does not know the request: is it older than this caisson?");
	else if (p->status >= 500 && p->status != 501 && p->status != 503 && !p->hint[0])
		problem_hint(p, "the daemon's log says more");
}

int problem_refusal(struct problem *p, unsigned int status, const json_t *answer,
		    unsigned int retry_after_s)
{
	const json_t *error = json_object_get(answer, "error");

	*p = (struct problem){ .exit_code = problem_exit_code(status),
			       .status = status,
			       .retry_after_s = retry_after_s };
	(void)snprintf(p->code, sizeof(p->code), "%s", text_of(error, "code"));
	wording(text_of(error, "message"), p->message, sizeof(p->message));
	wording(text_of(error, "hint"), p->hint, sizeof(p->hint));
	if (!p->code[0])
		(void)snprintf(p->code, sizeof(p->code), "http_%u", status);
	if (!p->message[0])
		(void)snprintf(p->message, sizeof(p->message),
			       "the daemon answered with status %u and no reason", status);
	own_hint(p);
	if (retry_after_s && p->exit_code == EXIT_BUSY)
		problem_hint(p, "try again in %u s", retry_after_s);
	return -1;
}

int problem_answer(struct problem *p, unsigned int status, const char *body, size_t len,
		   unsigned int retry_after_s)
{
	json_t *root = json_loadb(body, len, 0, NULL);
	int r = problem_refusal(p, status, root, retry_after_s);

	json_decref(root);
	return r;
}

void problem_about(struct problem *p, const char *what)
{
	char message[sizeof(p->message)];

	(void)snprintf(message, sizeof(message), "%.200s: %.300s", what, p->message);
	memcpy(p->message, message, sizeof(message));
}

void problem_print(const struct problem *p, bool json, int exit_code)
{
	_buf_ struct buf line = BUF_INIT(LINE_MAX_BYTES);
	const struct failure f = { p->code, p->message, p->hint, p->status, p->retry_after_s };

	if (json) {
		fail_json(&f, exit_code);
		return;
	}
	text_escape(&line, p->message, strlen(p->message));
	if (p->hint[0]) {
		(void)buf_puts(&line, " (");
		text_escape(&line, p->hint, strlen(p->hint));
		(void)buf_puts(&line, ")");
	}
	(void)fflush(stdout);
	(void)fprintf(stderr, "caisson: %s\n", buf_str(&line));
}
