/* SPDX-License-Identifier: Apache-2.0 */
/* fail.c - The report of a failure, which every verb ends with that fails. */
#include "client/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

const char *fail_code(const struct err *e)
{
	const char *name = strerrorname_np(-e->code);

	return name ? name : "EIO";
}

void fail_json(const struct failure *f, int exit_code)
{
	_buf_ struct buf b = BUF_INIT(16384);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "status", "failed");
	json_member_int(&j, "exit_code", exit_code);
	json_member_object(&j, "error");
	json_member_str(&j, "code", f->code);
	json_member_str(&j, "message", f->message);
	if (f->hint && f->hint[0])
		json_member_str(&j, "hint", f->hint);
	if (f->http_status)
		json_member_uint(&j, "http_status", f->http_status);
	if (f->retry_after_s)
		json_member_uint(&j, "retry_after", f->retry_after_s);
	json_object_end(&j);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		(void)printf("%s\n", buf_str(&b));
	(void)fflush(stdout);
}

/* A message may quote an argument or the name of a file: control characters are escaped. */
static void print_line(const char *msg)
{
	char line[4 * sizeof(((struct err *)0)->msg) + 1];
	size_t n = 0;

	for (const unsigned char *p = (const unsigned char *)msg; *p && n + 5 < sizeof(line); p++) {
		if (*p < 0x20 || *p == 0x7f)
			n += (size_t)snprintf(line + n, sizeof(line) - n, "\\x%02x", *p);
		else
			line[n++] = (char)*p;
	}
	line[n] = '\0';
	(void)fprintf(stderr, "caisson: %s\n", line);
}

int verb_fail(const struct err *e, int json, int exit_code)
{
	const struct failure f = {
		.code = fail_code(e),
		.message = e->msg,
		.hint = e->code == -EINVAL ? "caisson VERB --help lists the options" :
					     "caisson doctor says what is missing here",
	};

	if (json)
		fail_json(&f, exit_code);
	else
		print_line(e->msg);
	return exit_code;
}
