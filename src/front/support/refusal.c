/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.c - Errors in their one shape: {"error":{"code","message","field"?,"hint"?}}, with the
 * loss ("cause","state","files","epoch") or the room ("needed"?,"free","limit") where there is one.
 */
#include "front/support/refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"

int refusal_set(struct refusal *r, enum refusal_kind kind, const char *code, const char *field,
		const char *hint, const char *fmt, ...)
{
	va_list ap;

	*r = (struct refusal){ .kind = kind, .code = code, .field = field, .hint = hint };
	va_start(ap, fmt);
	(void)vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	return -1;
}

int refusal_no_memory(struct refusal *r)
{
	(void)refusal_set(r, REFUSAL_UNAVAILABLE, "out_of_memory", NULL, NULL,
			  "the daemon is out of memory");
	r->retry_after_s = 1;
	return -1;
}

static void begin(struct json *j, struct buf *out, const char *code, const char *message,
		  const char *field, const char *hint)
{
	json_init(j, out);
	json_object_begin(j);
	json_key(j, "error");
	json_object_begin(j);
	json_member_str(j, "code", code);
	json_member_str(j, "message", message);
	if (field && *field)
		json_member_str(j, "field", field);
	if (hint && *hint)
		json_member_str(j, "hint", hint);
}

static void end(struct json *j)
{
	json_object_end(j);
	json_object_end(j);
	(void)json_finish(j);
}

void error_json(struct buf *out, const char *code, const char *message, const char *field,
		const char *hint)
{
	struct json j;

	begin(&j, out, code, message, field, hint);
	end(&j);
}

void refusal_json(const struct refusal *r, struct buf *out)
{
	struct json j;

	begin(&j, out, r->code, r->message, r->field, r->hint);
	if (r->lost_by) {
		json_member_str(&j, "cause", r->lost_by);
		json_member_str(&j, "state", "reset");
		json_member_str(&j, "files", "lost");
		json_member_uint(&j, "epoch", r->epoch);
	}
	if (r->needed)
		json_member_uint(&j, "needed", r->needed);
	if (r->limit) {
		json_member_uint(&j, "free", r->room);
		json_member_uint(&j, "limit", r->limit);
	}
	end(&j);
}

const char *error_unwritten(int err)
{
	return err == -ENOMEM ?
		       "{\"error\":{\"code\":\"out_of_memory\",\"message\":\"the daemon is out of memory\"}}" :
		       "{\"error\":{\"code\":\"result_too_large\",\"message\":\"the result could not be written\"}}";
}
