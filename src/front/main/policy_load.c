/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_load.c - Read a policy, compare it with the options of the daemon, and put it in force.
 *
 * The defaults of the daemon must be within [default]: otherwise the operator has asked for two
 * things that contradict each other, and the policy is refused. The table of an owner may be below
 * the defaults: then the defaults of that owner are lowered (spec/judge.h).
 */
#include "front/main/policy_load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/private.h"
#include "front/cell/keep.h"
#include "front/egress/narrow.h"
#include "front/http/auth.h"
#include "front/main/parts.h"
#include "front/mcp/subscribe.h"
#include "front/mcp/tool.h"
#include "front/policy/policy.h"
#include "front/spec/mount_use.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/time_text.h"
#include "ledger/ledger.h"

#define MIB (UINT64_C(1) << 20)

/* ---- the file ------------------------------------------------------------------------------ */

static int read_text(int fd, struct buf *ret, struct err *e)
{
	ssize_t n = 1;

	buf_clear(ret);
	while (n > 0) {
		char part[4096];

		n = pread(fd, part, sizeof(part), (off_t)ret->len);
		if (n < 0)
			return err_set(e, -errno, "read it");
		if (buf_append(ret, part, (size_t)n) < 0)
			return err_say(e, -E2BIG, "is larger than %u KiB", RULES_TEXT_MAX >> 10);
	}
	return 0;
}

static int policy_read(int fd, uid_t uid, struct buf *ret, struct err *e)
{
	int r = private_check(fd, false, uid, e);

	return r < 0 ? r : read_text(fd, ret, e);
}

int policy_read_path(const char *path, struct buf *ret, struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_set(e, -errno, "cannot be opened");
	return policy_read(fd, geteuid(), ret, e);
}

/* ---- the policy and the options of the daemon ---------------------------------------------- */

static void check_defaults(const struct rules *r, const struct config *c,
			   struct rules_report *report)
{
	const struct {
		enum rule rule;
		uint64_t given, unit; /* in the daemon's unit; that many are one of the rule's */
		const char *flag;
	} defaults[] = {
		{ RULE_MEMORY_MIB, c->memory_bytes, MIB, "--memory" },
		{ RULE_CPUS, c->cpu_milli, 1, "--cpus" },
		{ RULE_PIDS, c->pids, 1, "--pids" },
		{ RULE_DISK_MIB, c->disk_bytes, MIB, "--disk" },
		{ RULE_EXECUTION_SECONDS, c->timeout_ms, 1000, "--timeout" },
		{ RULE_IDLE_SECONDS, c->idle_ms, 1000, "--idle-timeout" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		const struct rule_value *v = &r->fallback.values[defaults[i].rule];
		char have[NUM_FORMAT_MAX];

		if (!v->at.line || v->number * defaults[i].unit >= defaults[i].given)
			continue;
		if (defaults[i].unit == MIB)
			(void)num_format_size(defaults[i].given, have, sizeof(have));
		else if (defaults[i].unit == 1000)
			(void)num_format_ms(defaults[i].given, have, sizeof(have));
		else if (defaults[i].rule == RULE_CPUS)
			(void)snprintf(have, sizeof(have), "%.3g",
				       (double)defaults[i].given / 1000);
		else
			(void)snprintf(have, sizeof(have), "%" PRIu64, defaults[i].given);
		rules_complain(
			report, v->at,
			"%s: is below the default of the daemon, %s: raise it, or start the daemon "
			"with a lower %s",
			rule_name(defaults[i].rule), have, defaults[i].flag);
	}
}

static void check_section(const struct rules_section *s, const struct config *c,
			  struct rules_report *report)
{
	const struct rule_value *images = &s->values[RULE_IMAGES], *tools = &s->values[RULE_TOOLS];
	char unknown[64];

	if (c->without & CELL_WITHOUT_CGROUP && s->values[RULE_CPUS].at.line)
		rules_complain(report, s->values[RULE_CPUS].at,
			       "cpus: a daemon with --without cgroup cannot enforce it");
	if (images->at.line && !rule_lists_image(images, c->image))
		rules_complain(
			report, images->at,
			"images: '%.100s', the default image of the daemon (--image), is not in "
			"the list",
			c->image);
	for (size_t i = 0; i < tools->n; i++)
		if (strcmp(tools->words[i], "default") == 0 ||
		    strcmp(tools->words[i], "all") == 0 ||
		    !mcp_tools_check(tools->words[i], unknown, sizeof(unknown)))
			rules_complain(
				report, tools->at,
				"tools: there is no tool '%.60s'; an MCP client lists the tools "
				"with tools/list",
				tools->words[i]);
}

bool rules_agree(const struct rules *r, const struct config *c, struct rules_report *report)
{
	size_t before = report->n;

	check_defaults(r, c, report);
	check_section(&r->fallback, c, report);
	for (size_t i = 0; i < r->n_owners; i++)
		check_section(&r->owners[i], c, report);
	return report->n == before;
}

/* ---- from text to rules -------------------------------------------------------------------- */

/* NULL: policy->wrong and @e have the reason. */
static struct rules *judge(struct parts *p, const struct buf *text, struct err *e)
{
	static struct rules_report report; /* large; the process has one thread */
	struct rules *r;

	memset(&report, 0, sizeof(report));
	r = rules_parse(buf_str(text), text->len, &report);
	if (r && rules_agree(r, &p->daemon.config, &report))
		return r;
	rules_free(r);
	p->policy.wrong = report.errors[0].at;
	(void)err_say(e, -EINVAL, "%.160s:%u:%u: %s%s", p->daemon.config.policy,
		      report.errors[0].at.line, report.errors[0].at.column,
		      report.errors[0].message,
		      report.n > 1 ? " (and more: caisson policy check lists all)" : "");
	return NULL;
}

static struct rules *judge_file(struct parts *p, int r, struct buf *text, struct err *e)
{
	p->policy.wrong = (struct toml_at){ 0 };
	if (r == 0)
		return judge(p, text, e);
	(void)err_wrap(e, "%.160s", p->daemon.config.policy);
	return NULL;
}

/* An owner without a token is probably misspelt; then the real owner has the default. */
static void warn_of_owners(const struct parts *p, const struct rules *r)
{
	for (size_t i = 0; i < r->n_owners; i++)
		if (!auth_knows(p->server.auth, r->owners[i].owner))
			log_event(LOG_LEVEL_WARNING, "policy_owner",
				  F_STR("owner", r->owners[i].owner),
				  F_UINT("line", r->owners[i].at.line),
				  F_STR("what",
					"no token has this name: these rules apply to no caller"));
}

/* The ledger comes last: the rules hold even if that cannot be recorded. */
static void put_in_force(struct parts *p, struct rules *r, const char *how)
{
	struct policy_now *now = &p->policy;
	struct err e = { 0 };
	_fd_ int fd = fd_memfd("caisson-policy", buf_str(&now->text), now->text.len);

	rules_free(now->rules);
	now->rules = r;
	now->loaded_ms = time_now_ms();
	now->stale = false;
	mounts_pool(&p->admission);
	metric_set(G_POLICY_STALE, 0);
	if (fd >= 0)
		keep_put(&p->keep, KEEPER_POLICY, &fd, 1);
	buf_free(&now->text);
	warn_of_owners(p, r);
	log_event(LOG_LEVEL_INFO, "policy", F_STR("how", how),
		  F_STR("file", p->daemon.config.policy), F_STR("sha256", r->sha256),
		  F_UINT("owners", r->n_owners));
	if (ledger_record(p->daemon.ledger, &e, "policy.load", NULL, NULL, L_STR("how", how),
			  L_STR("sha256", r->sha256)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "policy.load"),
			  F_STR("why", e.msg));
}

/* The file was refused: the policy that is in force stays. */
static void keep_rules(struct parts *p, const struct err *why)
{
	struct policy_now *now = &p->policy;
	struct err e = { 0 };

	now->stale = true;
	metric_add(M_POLICY_REJECTED, 1);
	metric_set(G_POLICY_STALE, 1);
	log_event(LOG_LEVEL_ERROR, "policy_refused", F_STR("why", why->msg),
		  F_UINT("line", now->wrong.line), F_UINT("column", now->wrong.column),
		  F_STR("what", "the policy before it stays in force"));
	if (ledger_record(p->daemon.ledger, &e, "policy.reject", NULL, NULL,
			  L_UINT("line", now->wrong.line), L_UINT("column", now->wrong.column),
			  L_STR("in_force", now->rules->sha256)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "policy.reject"),
			  F_STR("why", e.msg));
}

/* ---- life ---------------------------------------------------------------------------------- */

int policy_load(struct parts *p, struct err *e)
{
	struct policy_now *now = &p->policy;

	now->uid = geteuid();
	buf_init(&now->text, RULES_TEXT_MAX);
	if (!p->daemon.config.policy)
		return 0;
	int r = policy_read_path(p->daemon.config.policy, &now->text, e);

	now->rules = judge_file(p, r, &now->text, e);
	if (now->rules)
		return 0;
	/* The policy of the former front may still be good; it is parsed in the jail only. */
	if (p->keep.life > 1) {
		now->broken = *e;
		*e = (struct err){ 0 };
		return 0;
	}
	return err_wrap(e, "--policy");
}

int policy_open(struct parts *p, struct err *e)
{
	struct policy_now *now = &p->policy;
	_fd_ int kept = keep_take_one(&p->keep, KEEPER_POLICY);
	struct toml_at wrong = now->wrong;
	struct rules *r = now->rules;

	if (!p->daemon.config.policy)
		return 0;
	now->rules = NULL;
	if (r) {
		put_in_force(p, r, "start");
		return 0;
	}
	if (kept < 0 || read_text(kept, &now->text, e) < 0 || !(r = judge(p, &now->text, e)))
		return err_say(e, -EINVAL, "--policy: %.480s", now->broken.msg);
	put_in_force(p, r, "kept");
	now->wrong = wrong;
	keep_rules(p, &now->broken);
	return 0;
}

void policy_reload(struct parts *p, int fd, int error)
{
	_fd_ int file = fd;
	struct policy_now *now = &p->policy;
	struct err e = { 0 };
	struct rules *r;
	int code;

	if (!p->daemon.config.policy || !now->rules)
		return;
	metric_add(M_POLICY_RELOADS, 1);
	code = file < 0 ? err_set(&e, -(error ? error : EIO), "cannot be opened") :
			  policy_read(file, now->uid, &now->text, &e);
	r = judge_file(p, code, &now->text, &e);
	if (r) {
		put_in_force(p, r, "reload");
		policy_narrow_all(&p->sandboxes);
		mcp_policy_changed(&p->mcp);
	} else {
		keep_rules(p, &e);
	}
	buf_free(&now->text);
}

void policy_close(struct parts *p)
{
	rules_free(p->policy.rules);
	p->policy.rules = NULL;
	buf_free(&p->policy.text);
}
