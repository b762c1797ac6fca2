/* SPDX-License-Identifier: Apache-2.0 */
/* policy_load.c - Read a policy, put it in force, or say why not. */
#include "front/main/policy_load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/cell/keep.h"
#include "front/egress/narrow.h"
#include "front/http/auth.h"
#include "front/mcp/subscribe.h"
#include "front/policy/policy.h"
#include "front/spec/mount_use.h"
#include "front/support/front.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/time_text.h"
#include "ledger/ledger.h"

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

int policy_read(int fd, uid_t uid, struct buf *ret, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "look at it");
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "must be a plain file");
	if (st.st_mode & 022)
		return err_say(e, -EPERM, "others can change it (mode %03o): chmod go-w it",
			       (unsigned)st.st_mode & 0777);
	if (st.st_uid != 0 && st.st_uid != uid)
		return err_say(e, -EPERM, "belongs to another user (uid %u)", (unsigned)st.st_uid);
	return read_text(fd, ret, e);
}

int policy_read_path(const char *path, struct buf *ret, struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_set(e, -errno, "open it");
	return policy_read(fd, geteuid(), ret, e);
}

/* ---- a text becomes rules ------------------------------------------------------------------ */

/* NULL: @now->wrong and @e say why. */
static struct rules *judge(struct front *f, const struct buf *text, struct err *e)
{
	static struct rules_report report; /* large, and of one thread */
	struct rules *r;

	memset(&report, 0, sizeof(report));
	r = rules_parse(buf_str(text), text->len, &report);
	if (r && rules_agree(r, &f->config, &report))
		return r;
	rules_free(r);
	f->policy->wrong = report.errors[0].at;
	(void)err_say(e, -EINVAL, "%.160s:%u:%u: %s%s", f->config.policy, report.errors[0].at.line,
		      report.errors[0].at.column, report.errors[0].message,
		      report.n > 1 ? " (and more: caisson policy check lists all)" : "");
	return NULL;
}

static struct rules *judge_file(struct front *f, int r, struct buf *text, struct err *e)
{
	f->policy->wrong = (struct toml_at){ 0 };
	if (r == 0)
		return judge(f, text, e);
	(void)err_wrap(e, "%.160s", f->config.policy);
	return NULL;
}

/* An owner whom nobody can be is a name that was written wrongly, and whoever was meant has the
 * default. */
static void look_at_owners(const struct front *f, const struct rules *r)
{
	for (size_t i = 0; i < r->n_owners; i++)
		if (!auth_knows(f->auth, r->owners[i].owner))
			log_event(LOG_LEVEL_WARNING, "policy_owner",
				  F_STR("owner", r->owners[i].owner),
				  F_UINT("line", r->owners[i].at.line),
				  F_STR("what",
					"no token has this name: nobody is held to these rules"));
}

/* The ledger is asked last: rules that can not be written down hold even so. */
static void put_in_force(struct front *f, struct rules *r, const char *how)
{
	struct policy_now *now = f->policy;
	struct err e = { 0 };
	_fd_ int fd = fd_memfd("caisson-policy", buf_str(&now->text), now->text.len);

	rules_free(now->rules);
	now->rules = r;
	now->loaded_ms = time_now_ms();
	now->stale = false;
	mounts_pool(f);
	metric_set(G_POLICY_STALE, 0);
	if (fd >= 0)
		keep_put(f->keep, KEEPER_POLICY, &fd, 1);
	buf_free(&now->text);
	look_at_owners(f, r);
	log_event(LOG_LEVEL_INFO, "policy", F_STR("how", how), F_STR("file", f->config.policy),
		  F_STR("sha256", r->sha256), F_UINT("owners", r->n_owners));
	if (ledger_record(f->ledger, &e, "policy.load", NULL, NULL, L_STR("how", how),
			  L_STR("sha256", r->sha256)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "policy.load"),
			  F_STR("why", e.msg));
}

static void stay(struct front *f, const struct err *why)
{
	struct policy_now *now = f->policy;
	struct err e = { 0 };

	now->stale = true;
	metric_add(M_POLICY_REJECTED, 1);
	metric_set(G_POLICY_STALE, 1);
	log_event(LOG_LEVEL_ERROR, "policy_refused", F_STR("why", why->msg),
		  F_UINT("line", now->wrong.line), F_UINT("column", now->wrong.column),
		  F_STR("what", "the policy before it stays in force"));
	if (ledger_record(f->ledger, &e, "policy.reject", NULL, NULL,
			  L_UINT("line", now->wrong.line), L_UINT("column", now->wrong.column),
			  L_STR("in_force", now->rules->sha256)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "policy.reject"),
			  F_STR("why", e.msg));
}

/* ---- life ---------------------------------------------------------------------------------- */

int policy_load(struct front *f, struct err *e)
{
	struct policy_now *now = f->policy;

	now->uid = geteuid();
	buf_init(&now->text, RULES_TEXT_MAX);
	if (!f->config.policy)
		return 0;
	int r = policy_read_path(f->config.policy, &now->text, e);

	now->rules = judge_file(f, r, &now->text, e);
	if (now->rules)
		return 0;
	/* What the front before us had may still be good; that is looked at in the jail alone. */
	if (f->keep->life > 1) {
		now->broken = *e;
		*e = (struct err){ 0 };
		return 0;
	}
	return err_wrap(e, "--policy");
}

int policy_open(struct front *f, struct err *e)
{
	struct policy_now *now = f->policy;
	_fd_ int kept = keep_take_one(f->keep, KEEPER_POLICY);
	struct toml_at wrong = now->wrong;
	struct rules *r = now->rules;

	if (!f->config.policy)
		return 0;
	now->rules = NULL;
	if (r) {
		put_in_force(f, r, "start");
		return 0;
	}
	if (kept < 0 || read_text(kept, &now->text, e) < 0 || !(r = judge(f, &now->text, e)))
		return err_say(e, -EINVAL, "--policy: %.480s", now->broken.msg);
	put_in_force(f, r, "kept");
	now->wrong = wrong;
	stay(f, &now->broken);
	return 0;
}

void policy_reload(struct front *f, int fd, int error)
{
	_fd_ int file = fd;
	struct policy_now *now = f->policy;
	struct err e = { 0 };
	struct rules *r;
	int code;

	if (!f->config.policy || !now->rules)
		return;
	metric_add(M_POLICY_RELOADS, 1);
	code = file < 0 ? err_set(&e, -(error ? error : EIO), "open it") :
			  policy_read(file, now->uid, &now->text, &e);
	r = judge_file(f, code, &now->text, &e);
	if (r)
		put_in_force(f, r, "reload");
	else
		stay(f, &e);
	if (r) {
		policy_narrow_all(f);
		mcp_policy_changed(f);
	}
	buf_free(&now->text);
}

void policy_close(struct front *f)
{
	rules_free(f->policy->rules);
	f->policy->rules = NULL;
	buf_free(&f->policy->text);
}
