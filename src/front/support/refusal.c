/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c - Errors in their one shape: {"error":{"code","message","field"?,"hint"?}}. */
#include "front/support/refusal.h"

#include <errno.h>

#include "base/buf.h"
#include "base/json.h"

void error_json(struct buf *out, const char *code, const char *message, const char *field,
		const char *hint)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "error");
	json_object_begin(&j);
	json_member_str(&j, "code", code);
	json_member_str(&j, "message", message);
	if (field && *field)
		json_member_str(&j, "field", field);
	if (hint && *hint)
		json_member_str(&j, "hint", hint);
	json_object_end(&j);
	json_object_end(&j);
	(void)json_finish(&j);
}

void refusal_json(const struct refusal *r, struct buf *out)
{
	error_json(out, r->code, r->message, r->field, r->hint);
}

const char *error_unwritten(int err)
{
	return err == -ENOMEM ?
		       "{\"error\":{\"code\":\"out_of_memory\",\"message\":\"the daemon is out of memory\"}}" :
		       "{\"error\":{\"code\":\"result_too_large\",\"message\":\"the result could not be written\"}}";
}
