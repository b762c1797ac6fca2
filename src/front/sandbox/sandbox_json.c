/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_json.c - Writes the name, state, spec and numbers of a sandbox. */
#include "front/sandbox/sandbox_json.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "front/cell/cell.h"
#include "front/sandbox/process.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/time_text.h"

static void write_usage(struct json *j, const struct sandbox *s)
{
	struct cell_usage u = s->before;
	uint64_t memory = 0;

	if (s->cell) {
		(void)cell_gauge(s->cell, &u);
		(void)gauges_memory(&s->cell->gauges, &memory);
	}
	json_key(j, "usage");
	json_object_begin(j);
	json_key(j, "cpu_seconds");
	json_double(j, (double)u.cpu_ns / (double)CLOCK_NS_PER_S, 6);
	json_member_uint(j, "memory", memory);
	json_member_uint(j, "memory_peak", u.memory_peak);
	json_member_uint(j, "pids_peak", u.pids_peak);
	json_object_end(j);
}

static double seconds_since(uint64_t then_ns)
{
	return (double)(clock_now_ns() - then_ns) / (double)CLOCK_NS_PER_S;
}

void sandbox_json(const struct sandbox *s, const struct buf *receipt, struct json *j)
{
	bool used = s->head || s->entries;

	json_object_begin(j);
	json_member_str(j, "name", s->name);
	json_member_str(j, "owner", s->owner);
	json_member_str(j, "state", sandbox_state_name(s->state));
	if (s->state != SANDBOX_RUNNING)
		json_member_str(j, "reason", s->reason);
	json_member_bool(j, "busy", used);
	json_key(j, "spec");
	sandbox_spec_json(s->sandboxes->admission, &s->spec, j);
	json_member_uint(j, "epoch", s->epoch);
	json_member_uint(j, "executions", s->executions);
	json_member_uint(j, "processes", processes_alive(s));
	json_member_uint(j, "queued", s->n_queued - s->running);
	time_json(j, "created_at", s->created_ms);
	if (s->adopted_ms)
		time_json(j, "adopted_at", s->adopted_ms);
	if (s->expires_ms)
		time_json(j, "expires_at", s->expires_ms);
	json_key(j, "age_seconds");
	json_double(j, seconds_since(s->created_ns) + (double)s->aged_ns / (double)CLOCK_NS_PER_S,
		    3);
	json_key(j, "idle_seconds");
	json_double(j, used ? 0 : seconds_since(s->used_ns), 3);
	if (receipt) {
		write_usage(j, s);
		json_key(j, "receipt");
		if (receipt->len || receipt->err)
			json_buf(j, receipt);
		else
			json_none(j);
	}
	json_object_end(j);
}
