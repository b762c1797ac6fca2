/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_verify.c - Is the ledger whole?
 *
 * The chain itself says what happened between its first and its last line. The two ends need words
 * from outside: --from, when the beginning is in an archive, and --head, a line that was noted
 * where nobody could change it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/num.h"
#include "ledger/reader.h"
#include "remote/audit.h"
#include "remote/terminal.h"

struct verify {
	struct progress progress;
	struct chain_link noted; /* known: --head was given */
	bool found, differs;
};

static int parse_head(const char *s, struct chain_link *ret, struct err *e)
{
	char number[24];
	const char *colon = strchr(s, ':');
	size_t len = colon ? (size_t)(colon - s) : 0;

	if (!colon || len >= sizeof(number) || strlen(colon + 1) != CHAIN_HEX ||
	    strspn(colon + 1, "0123456789abcdef") != CHAIN_HEX)
		return err_say(e, -EINVAL,
			       "--head: '%.100s' is not a line's number, a colon and its hash of "
			       "64 digits, as verify prints them",
			       s);
	memcpy(number, s, len);
	number[len] = '\0';
	if (num_parse_u64(number, 1, UINT64_MAX, &ret->seq, e) < 0)
		return err_wrap(e, "--head");
	memcpy(ret->hash, colon + 1, CHAIN_HEX);
	ret->known = true;
	return 0;
}

static int look(const struct reader_line *line, const struct reader_report *so_far, void *arg)
{
	struct verify *v = arg;

	(void)line;
	if (v->noted.known && so_far->head.seq == v->noted.seq) {
		v->found = true;
		v->differs = memcmp(so_far->head.hash, v->noted.hash, CHAIN_HEX) != 0;
	}
	if (so_far->lines % 1024 == 0)
		progress_update(&v->progress, so_far->bytes, so_far->total_bytes);
	return 0;
}

/* What the chain can not know. */
static void judge_ends(const struct audit_options *o, const struct verify *v,
		       struct reader_report *r)
{
	if (r->damaged)
		return;
	if (r->first_seq > o->from) {
		r->damaged = true;
		(void)snprintf(
			r->why, sizeof(r->why),
			"it begins with line number %" PRIu64
			", what was before is not here; if that was archived: --from %" PRIu64,
			r->first_seq, r->first_seq);
	} else if (v->noted.known && !v->found && v->noted.seq < r->first_seq) {
		r->damaged = true;
		(void)snprintf(r->why, sizeof(r->why),
			       "the noted line number %" PRIu64 " is older than what is here",
			       v->noted.seq);
	} else if (v->noted.known && !v->found) {
		r->damaged = true;
		(void)snprintf(r->why, sizeof(r->why),
			       "it ends with line number %" PRIu64 ", before the noted %" PRIu64
			       ": lines were taken from its end",
			       r->head.seq, v->noted.seq);
	} else if (v->differs) {
		r->damaged = true;
		(void)snprintf(r->why, sizeof(r->why),
			       "line number %" PRIu64
			       " is not the one that was noted: the ledger was made anew",
			       v->noted.seq);
	}
}

static void print_text(const struct reader_report *r)
{
	char size[NUM_FORMAT_MAX];

	terminal_colour(r->damaged ? TERMINAL_RED : TERMINAL_GREEN);
	(void)printf("%s", r->damaged ? "damaged" : "whole");
	terminal_colour(TERMINAL_PLAIN);
	if (r->damaged && r->file[0])
		(void)printf(": %s, line %" PRIu64 ": %s\n", r->file, r->line, r->why);
	else if (r->damaged)
		(void)printf(": %s\n", r->why);
	else
		(void)printf(": %" PRIu64 " line%s in %" PRIu64 " file%s, %s\n", r->lines,
			     r->lines == 1 ? "" : "s", r->files, r->files == 1 ? "" : "s",
			     num_format_size(r->bytes, size, sizeof(size)));
	if (r->head.seq > 0)
		(void)printf("%s %" PRIu64 ":%s\n", r->damaged ? "good up to" : "head", r->head.seq,
			     r->head.hash);
}

static int print_json(const struct reader_report *r, struct err *e)
{
	_buf_ struct buf b = BUF_INIT(16384);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "status", r->damaged ? "damaged" : "whole");
	json_member_uint(&j, "files", r->files);
	json_member_uint(&j, "lines", r->lines);
	json_member_uint(&j, "bytes", r->bytes);
	json_member_uint(&j, "first_seq", r->first_seq);
	json_key(&j, "head");
	json_object_begin(&j);
	json_member_uint(&j, "seq", r->head.seq);
	json_member_str(&j, "hash", r->head.hash);
	json_object_end(&j);
	json_key(&j, "damage");
	if (r->damaged) {
		json_object_begin(&j);
		json_member_str(&j, "file", r->file[0] ? r->file : NULL);
		json_member_uint(&j, "line", r->line);
		json_member_str(&j, "reason", r->why);
		json_member_uint(&j, "torn_bytes", r->torn);
		json_object_end(&j);
	} else {
		json_none(&j);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0)
		return err_set(e, -ENOMEM, "write the verdict");
	(void)printf("%s\n", buf_str(&b));
	return 0;
}

int audit_verify(const struct audit_options *o, int dirfd, struct err *e)
{
	struct verify v = { 0 };
	struct reader_report report;
	int r;

	if (o->head && parse_head(o->head, &v.noted, e) < 0)
		return e->code;
	progress_begin(&v.progress, "checking the ledger");
	r = reader_run(dirfd, false, look, &v, &report, e);
	progress_end(&v.progress);
	if (r < 0)
		return r;
	judge_ends(o, &v, &report);
	if (!o->json)
		print_text(&report);
	else if (print_json(&report, e) < 0)
		return e->code;
	return report.damaged ? AUDIT_EXIT_DAMAGED : 0;
}
