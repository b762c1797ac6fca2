/* SPDX-License-Identifier: Apache-2.0 */
/* execute_request.c - What a request for an execution says. */
#include "front/api/execute_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/cell/image_use.h"
#include "front/http/reply.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"

static const char *string_of(const json_t *body, const char *key)
{
	return json_string_value(json_object_get(body, key));
}

const char *ask_session(const json_t *body)
{
	return string_of(body, "session_id");
}

static void refuse(struct refusal *r, enum refusal_kind kind, const char *code, const char *field,
		   const char *hint)
{
	*r = (struct refusal){ .kind = kind, .code = code, .field = field, .hint = hint };
}

static const struct language *language_of(struct sandboxes *sandboxes, const json_t *body, struct refusal *ret)
{
	const char *name = string_of(body, "language");
	const struct language *l = language_find(name ? name : "python");
	char there[128];

	if (l) /* whether the image has it the sandbox tells */
		return l;
	image_languages(&sandboxes->cells->images->own, there, sizeof(there));
	refuse(ret, REFUSAL_INVALID, "unknown_language", "language", NULL);
	(void)snprintf(ret->message, sizeof(ret->message),
		       "this language is unknown; there are: %s", there);
	return NULL;
}

static bool set_stdin(struct execution *x, const json_t *body)
{
	const json_t *text = json_object_get(body, "stdin");

	if (!json_is_string(text))
		return true;
	x->has_stdin = true;
	x->stdin_text = strndup(json_string_value(text), json_string_length(text));
	return x->stdin_text != NULL;
}

struct execution *ask_execution(struct sandboxes *sandboxes, const char *owner, const json_t *body,
				const struct sink *sink, void *user, struct refusal *ret)
{
	const json_t *code = json_object_get(body, "code");
	const struct language *l = language_of(sandboxes, body, ret);
	uint64_t timeout_ms;

	if (!l)
		return NULL;
	if (sandboxes->daemon->draining) {
		refuse(ret, REFUSAL_UNAVAILABLE, "draining", NULL, NULL);
		ret->retry_after_s = 5;
		(void)snprintf(ret->message, sizeof(ret->message), "the daemon is shutting down");
		return NULL;
	}
	if (l->id != LANG_PYTHON && json_object_get(body, "stdin")) {
		refuse(ret, REFUSAL_INVALID, "unsupported_field", "stdin",
		       "put the text into the code, or use the WebSocket where the language can ask");
		(void)snprintf(ret->message, sizeof(ret->message),
			       "only python reads lines that come with the request");
		return NULL;
	}
	if (policy_execution(sandboxes->admission, owner, schema_ms(body, "timeout"), &timeout_ms, ret) < 0)
		return NULL;
	struct execution *x = execution_new(sandboxes, l, json_string_value(code), json_string_length(code),
					    timeout_ms, sink, user);

	if (x && set_stdin(x, body))
		return x;
	if (x)
		execution_free(x);
	(void)refusal_no_memory(ret);
	return NULL;
}
