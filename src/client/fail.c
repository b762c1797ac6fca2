/* SPDX-License-Identifier: Apache-2.0 */
/* fail.c - How every verb says that it failed. */
#include "client/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

/* One line, whatever is in it: a message may quote what somebody typed or named a file. */
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
	if (json) {
		_buf_ struct buf b = BUF_INIT(16384);
		struct json j;

		json_init(&j, &b);
		json_object_begin(&j);
		json_member_str(&j, "status", "failed");
		json_member_int(&j, "exit_code", exit_code);
		json_key(&j, "error");
		json_object_begin(&j);
		json_member_str(&j, "code",
				strerrorname_np(-e->code) ? strerrorname_np(-e->code) : "EIO");
		json_member_str(&j, "message", e->msg);
		json_member_str(&j, "hint",
				e->code == -EINVAL ? "caisson VERB --help lists the options" :
						     "caisson doctor says what is missing here");
		json_object_end(&j);
		json_object_end(&j);
		if (json_finish(&j) == 0)
			(void)printf("%s\n", buf_str(&b));
	} else {
		print_line(e->msg);
	}
	return exit_code;
}
