/* SPDX-License-Identifier: Apache-2.0 */
/* execution_record.c - What is kept of an execution for those who ask about it later. */
#include <string.h>

#include "base/json.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/support/refusal.h"

#define ANSWER_MAX (128u << 20)

bool execution_keep(struct execution *x, struct sandbox *s)
{
	x->record = record_new(&s->records, x->id, x->language->name);
	return x->record != NULL;
}

const struct buf *execution_final(struct execution *x)
{
	struct json j;

	if (x->answer.len > 0)
		return &x->answer;
	buf_init(&x->answer, ANSWER_MAX);
	if (x->refusal.status) {
		refusal_json(&x->refusal, &x->answer);
		return &x->answer;
	}
	json_init(&j, &x->answer);
	execution_exec_json(x, &j);
	(void)json_finish(&j); /* answer.err */
	return &x->answer;
}

void execution_close_record(struct execution *x)
{
	struct record *r = x->record;

	x->record = NULL;
	if (x->refusal.status && !r->started_ms && !r->log) { /* never was */
		record_drop(r);
		return;
	}
	const struct buf *b = execution_final(x);
	const char *text = b->err ? error_unwritten(b->err) : buf_str(b);
	size_t len = b->err ? strlen(text) : b->len;

	if (x->refusal.status)
		record_finish(r, "refused", "refused", text, len);
	else
		record_finish(r, "done", result_status_name(x->verdict.status), text, len);
}
