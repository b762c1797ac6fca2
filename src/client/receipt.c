/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.c - From evidence to receipt.
 *
 * Two passes over the framed items: the first sums up all threads (the worst value of each), the
 * second writes the lists. Nothing is read beyond its frame: keys are looked up line by line in
 * files that the Linux kernel wrote, and texts that a guest could have chosen (descriptor targets,
 * names) only ever become escaped JSON strings.
 */
#include "client/receipt.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cell/seccomp.h"
#include "wire/evidence.h"

static const char *const cap_keys[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };
#define N_CAPS ARRAY_SIZE(cap_keys)

/* KILL, SETGID, SETUID, SETPCAP: what pid 1 may hold, and only in these sets. */
#define INIT_CAPS 0x1e0ull

static const char *const ns_names[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };
#define N_NS ARRAY_SIZE(ns_names)

struct posture {
	unsigned int threads;
	uint64_t caps[N_CAPS]; /* union over threads */
	uint64_t seccomp_min;  /* smallest mode */
	uint64_t filters_min;
	uint64_t nnp_min;
	uint64_t ns[N_NS];
	bool ns_known;
	bool ns_differ; /* two processes of the cell do not share them, or one's make no sense */
};

struct view {
	const char *data;
	size_t len;
};

struct sum {
	struct posture init, commands;
	uint64_t host_ns[N_NS];
	bool host_ns_known;
	uint64_t memory, pids, cpu_milli;
	bool cgroup_known;
	uint32_t main_pid; /* the first process that is not init */
	unsigned int lost;
	const char *missing[24];
	size_t n_missing;
};

/* ---- reading -------------------------------------------------------------------------------- */

/* Step to the next item. 1 found, 0 end, -EBADMSG. */
static int next_item(struct view all, size_t *at, struct evidence_item *item, struct view *text)
{
	size_t left = all.len - *at;

	if (left == 0)
		return 0;
	if (left < sizeof(*item))
		return -EBADMSG;
	memcpy(item, all.data + *at, sizeof(*item));
	left -= sizeof(*item);
	size_t padded = ((size_t)item->len + 7) / 8 * 8;

	if (item->len > EVIDENCE_ITEM_MAX || padded > left)
		return -EBADMSG;
	*text = (struct view){ all.data + *at + sizeof(*item), item->len };
	*at += sizeof(*item) + padded;
	return 1;
}

/* The value of a line that starts with @key, as a number. */
static bool line_value(struct view text, const char *key, int base, uint64_t *ret)
{
	size_t n = strlen(key);

	for (size_t at = 0; at + n < text.len;) {
		const char *line = text.data + at;
		const char *nl = memchr(line, '\n', text.len - at);
		size_t len = nl ? (size_t)(nl - line) : text.len - at;

		if (len > n && memcmp(line, key, n) == 0) {
			char digits[32];
			size_t k = 0, from = n;

			while (from < len && (line[from] == '\t' || line[from] == ' '))
				from++;
			while (from < len && k < sizeof(digits) - 1 && line[from] != '\t' &&
			       line[from] != ' ')
				digits[k++] = line[from++];
			digits[k] = '\0';
			*ret = strtoull(digits, NULL, base);
			return k > 0;
		}
		at += len + 1;
	}
	return false;
}

/* The smallest value of all threads; 0 where the line is missing. */
static void add_least(const struct posture *p, struct view text, const char *key, uint64_t *least)
{
	uint64_t v = 0;

	if (!line_value(text, key, 10, &v))
		v = 0;
	if (p->threads == 0 || v < *least)
		*least = v;
}

static void add_status(struct posture *p, struct view text)
{
	uint64_t v = 0;

	for (size_t i = 0; i < N_CAPS; i++)
		p->caps[i] |= line_value(text, cap_keys[i], 16, &v) ? v : ~0ull;
	add_least(p, text, "Seccomp:", &p->seccomp_min);
	add_least(p, text, "Seccomp_filters:", &p->filters_min);
	add_least(p, text, "NoNewPrivs:", &p->nnp_min);
	p->threads++;
}

/* Lines "user:[4026531837]", in the order of ns_names. */
static bool parse_ns(struct view text, uint64_t ns[N_NS])
{
	for (size_t i = 0; i < N_NS; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "%s:[", ns_names[i]);
		if (!line_value(text, key, 10, &ns[i]) || ns[i] == 0)
			return false;
	}
	return true;
}

static void add_ns(struct posture *p, struct view text)
{
	uint64_t ns[N_NS];

	if (!parse_ns(text, ns)) {
		p->ns_differ = true;
		return;
	}
	if (p->ns_known && memcmp(ns, p->ns, sizeof(ns)) != 0)
		p->ns_differ = true;
	memcpy(p->ns, ns, sizeof(ns));
	p->ns_known = true;
}

static void add_item(struct sum *s, const struct evidence_item *item, struct view text)
{
	struct posture *p = item->is_init ? &s->init : &s->commands;

	if (!item->is_init && item->pid && !s->main_pid)
		s->main_pid = item->pid;
	switch (item->kind) {
	case EVIDENCE_STATUS:
		add_status(p, text);
		break;
	case EVIDENCE_NS:
		add_ns(p, text);
		break;
	case EVIDENCE_HOST_NS:
		s->host_ns_known = parse_ns(text, s->host_ns);
		break;
	case EVIDENCE_CGROUP:
		s->cgroup_known = line_value(text, "memory ", 10, &s->memory) &&
				  line_value(text, "pids ", 10, &s->pids) &&
				  line_value(text, "cpu_milli ", 10, &s->cpu_milli);
		break;
	case EVIDENCE_LOST:
		/* Without privilege the Linux kernel does not show the descriptors of a pid 1 that
		 * cannot be traced. The receipt vouches for nothing else that is unknown. */
		if (!(item->is_init && text.len > 3 && memcmp(text.data, "fd:", 3) == 0))
			s->lost++;
		break;
	default:
		break;
	}
}

/* ---- judging -------------------------------------------------------------------------------- */

static void require(struct sum *s, bool in_force, const char *layer)
{
	if (!in_force && s->n_missing < ARRAY_SIZE(s->missing))
		s->missing[s->n_missing++] = layer;
}

static void judge(struct sum *s, const struct cell_spec *spec, const struct init_ready *ready,
		  bool runs)
{
	static const char *const ns_layers[] = {
		"user namespace", "pid namespace", "mount namespace",  "network namespace",
		"ipc namespace",  "uts namespace", "cgroup namespace",
	};
	bool known = s->host_ns_known && s->init.ns_known;

	for (size_t i = 0; i < N_NS; i++) {
		bool own = known && s->init.ns[i] != s->host_ns[i];
		bool shared = s->commands.threads == 0 ||
			      (s->commands.ns_known && !s->commands.ns_differ &&
			       s->commands.ns[i] == s->init.ns[i]);

		require(s, own && shared, ns_layers[i]);
	}
	require(s, s->lost == 0 && s->init.threads > 0 && (s->commands.threads > 0 || !runs),
		"complete evidence");

	bool zero = true, init_caps = true;

	for (size_t i = 0; i < N_CAPS; i++) {
		zero = zero && (s->commands.threads == 0 || s->commands.caps[i] == 0);
		init_caps = init_caps && (s->init.caps[i] & ~INIT_CAPS) == 0;
	}
	require(s, zero && init_caps, "zero capabilities");
	require(s, s->init.nnp_min == 1 && (s->commands.threads == 0 || s->commands.nnp_min == 1),
		"no-new-privileges");
	if (!(spec->without & CELL_WITHOUT_SECCOMP))
		require(s,
			ready->seccomp_on && s->init.seccomp_min == 2 &&
				(s->commands.threads == 0 || s->commands.seccomp_min == 2),
			"seccomp");
	/* Landlock is a second layer: required where the Linux kernel has it. */
	if (!(spec->without & CELL_WITHOUT_LANDLOCK) && ready->landlock_abi >= 6)
		require(s, ready->landlock_on, "landlock");
	if (!(spec->without & CELL_WITHOUT_CGROUP)) {
		require(s,
			s->cgroup_known && s->memory > 0 && s->memory <= spec->limits.memory_bytes,
			"memory limit");
		require(s, s->cgroup_known && s->pids == spec->limits.pids + 1, "pids limit");
		require(s, s->cgroup_known && s->cpu_milli == spec->limits.cpu_milli, "cpu limit");
	}
}

/* ---- writing -------------------------------------------------------------------------------- */

static void hex(struct json *j, const char *key, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%016llx", (unsigned long long)v);
	json_member_str(j, key, text);
}

static void write_posture(struct json *j, const char *key, const struct posture *p)
{
	static const char *const names[] = { "inheritable", "permitted", "effective", "bounding",
					     "ambient" };

	json_member_object(j, key);
	json_member_uint(j, "threads", p->threads);
	json_member_object(j, "capabilities");
	for (size_t i = 0; i < N_CAPS; i++)
		hex(j, names[i], p->caps[i]);
	json_object_end(j);
	json_member_bool(j, "no_new_privs", p->threads > 0 && p->nnp_min == 1);
	json_member_str(j, "seccomp",
			p->seccomp_min == 2 ? "filter" :
			p->seccomp_min == 1 ? "strict" :
					      "none");
	json_member_uint(j, "seccomp_filters", p->filters_min);
	json_object_end(j);
}

static void write_namespaces(struct json *j, const struct sum *s)
{
	json_member_object(j, "namespaces");
	for (size_t i = 0; i < N_NS; i++) {
		json_member_object(j, ns_names[i]);
		json_member_uint(j, "cell", s->init.ns[i]);
		json_member_uint(j, "host", s->host_ns[i]);
		json_object_end(j);
	}
	json_object_end(j);
}

/* One array over all items of a kind; every text is written line by line. */
static bool ends_with(struct view text, const char *end)
{
	size_t n = strlen(end);

	return text.len >= n && memcmp(text.data + text.len - n, end, n) == 0;
}

static void write_lines(struct json *j, const char *key, const struct sum *s, struct view all,
			uint32_t kind, bool of_main)
{
	struct evidence_item item;
	struct view text;

	json_member_array(j, key);
	for (size_t at = 0; next_item(all, &at, &item, &text) == 1;) {
		if (item.kind != kind || (of_main && item.pid != s->main_pid))
			continue;
		/* A command is looked at right before execve, which closes these. */
		if (kind == EVIDENCE_FD && ends_with(text, EVIDENCE_CLOEXEC))
			continue;
		for (size_t from = 0; from < text.len;) {
			const char *nl = kind == EVIDENCE_FD ?
						 NULL :
						 memchr(text.data + from, '\n', text.len - from);
			size_t len = nl ? (size_t)(nl - text.data) - from : text.len - from;

			(void)json_strn(j, text.data + from, len);
			from += len + 1;
		}
	}
	json_array_end(j);
}

static void write_weakened(struct json *j, const struct cell_spec *spec)
{
	json_member_array(j, "weakened");
	if (spec->without & CELL_WITHOUT_SECCOMP)
		json_str(j, "seccomp");
	if (spec->without & CELL_WITHOUT_LANDLOCK)
		json_str(j, "landlock");
	if (spec->without & CELL_WITHOUT_CGROUP)
		json_str(j, "cgroup");
	json_array_end(j);
}

static void write_receipt(struct json *j, const struct sum *s, struct view all,
			  const struct cell_spec *spec, const struct init_ready *ready)
{
	json_object_begin(j);
	json_member_bool(j, "enforced", s->n_missing == 0);
	json_member_array(j, "missing");
	for (size_t i = 0; i < s->n_missing; i++)
		json_str(j, s->missing[i]);
	json_array_end(j);
	write_weakened(j, spec);
	write_namespaces(j, s);
	json_member_bool(j, "running", s->commands.threads > 0);
	if (s->commands.threads > 0)
		write_posture(j, "commands", &s->commands);
	else
		json_member_null(j, "commands");
	write_posture(j, "init", &s->init);
	json_member_str(j, "seccomp_policy", ready->seccomp_on ? seccomp_policy_id() : "");
	json_member_object(j, "landlock");
	json_member_uint(j, "abi", ready->landlock_abi);
	json_member_bool(j, "scoped", ready->landlock_on);
	json_object_end(j);
	json_member_uint(j, "nested_user_namespaces_max", ready->nested_userns_max);
	if (s->cgroup_known) {
		json_member_object(j, "cgroup");
		json_member_uint(j, "memory", s->memory);
		json_member_uint(j, "pids", s->pids);
		json_member_uint(j, "cpu_milli", s->cpu_milli);
		json_object_end(j);
	} else {
		json_member_null(j, "cgroup");
	}
	write_lines(j, "rlimits", s, all, EVIDENCE_LIMITS, true);
	write_lines(j, "descriptors", s, all, EVIDENCE_FD, true);
	write_lines(j, "mounts", s, all, EVIDENCE_MOUNTINFO, false);
	write_lines(j, "unreadable", s, all, EVIDENCE_LOST, false);
	json_object_end(j);
}

int receipt_from(const void *data, size_t len, const struct cell_spec *spec,
		 const struct init_ready *ready, bool runs, struct buf *out, struct err *e)
{
	struct view all = { data, len }, text;
	struct evidence_item item;
	struct sum s;
	struct json j;
	size_t at = 0;
	int r;

	memset(&s, 0, sizeof(s));
	while ((r = next_item(all, &at, &item, &text)) == 1)
		add_item(&s, &item, text);
	if (r < 0)
		return err_say(e, r, "the warden's evidence is damaged");
	judge(&s, spec, ready, runs);
	json_init(&j, out);
	write_receipt(&j, &s, all, spec, ready);
	r = json_finish(&j);
	if (r < 0)
		return err_set(e, r, "write the receipt");
	if (s.n_missing > 0)
		return err_say(e, -EPERM, "required layer not in force: %s", s.missing[0]);
	return 0;
}

int receipt_write(int evidence, const struct cell_spec *spec, const struct init_ready *ready,
		  bool runs, struct buf *out, struct err *e)
{
	size_t len = 0;
	_mem_ char *text = fd_read_whole(evidence, EVIDENCE_MAX, &len);

	if (!text && errno != EFBIG && errno != EBADF)
		return err_set(e, -errno, "read the warden's evidence");
	if (len == 0)
		return err_say(e, -EBADMSG, "the warden's evidence is damaged");
	return receipt_from(text, len, spec, ready, runs, out, e);
}
