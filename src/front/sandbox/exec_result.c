/* SPDX-License-Identifier: Apache-2.0 */
/* exec_result.c - ExecResult as JSON. */
#include "front/sandbox/exec_result.h"

#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "front/output/output_text.h"

void exec_cause_members(const struct result *r, struct json *j)
{
	json_member_str(j, "status", result_status_name(r->status));
	if (r->cause != CAUSE_NONE)
		json_member_str(j, "cause", result_cause_name(r->cause));
	if (r->limit) {
		json_member_uint(j, "limit", r->limit);
		json_member_uint(j, "peak", r->peak);
	}
	if (r->hint[0])
		json_member_str(j, "hint", r->hint);
	if (r->signo)
		json_member_str(j, "signal",
				sigabbrev_np(r->signo) ? sigabbrev_np(r->signo) : "RT");
}

void exec_result_members(const struct exec_result *r, struct json *j)
{
	bool cut = output_json(r->out, j, "stdout", r->chars);

	cut |= output_json(r->err, j, "stderr", r->chars);
	output_both_json(r->out, r->err, j, r->chars);
	json_member_int(j, "exit_code", r->verdict->exit_code);
	json_member_bool(j, "ok", r->verdict->exit_code == 0);
	json_member_bool(j, "truncated", cut || r->dropped);
	exec_cause_members(r->verdict, j);
	json_key(j, "execution_time");
	json_double(j, (double)r->outcome->wall_ns / 1e9, 6);
	result_usage_json(j, r->outcome);
	json_member_str(j, "execution_id", r->execution_id);
}
