/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c - A parsed policy compiled to the BPF program that the kernel runs on every call.
 *
 * Used at build time and by tests. libseccomp gives the numbers but does not build the program: it
 * compares an argument once per rule, so it cannot say "ioctl, unless the low 32 bits are one of
 * these three" with an errno of its own for each check.
 *
 * Theory of operation: first the architecture, then, on x86-64, the x32 bit, then a binary search
 * over the numbers. Neighbours with the same answer are one segment, so the tree has a leaf for
 * each change of answer and not for each call; a leaf is one return, or the checks of a call in the
 * order of the policy. Each leaf ends in a return and all jumps lead forward, as the kernel
 * demands, and all are relative, so finished code can be moved.
 *
 * An argument is loaded as its low 32 bits and the high ones are never looked at: the kernel takes
 * the checked arguments as int, and a comparison of 64 bits could be passed by with a high bit set.
 */
#include "seccomp/policy.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"

static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the low half of an argument is loaded first");

#define LOW_HALF(arg) ((uint32_t)(offsetof(struct seccomp_data, args) + 8u * (arg)))
#define JUMP_MAX 255u

/* Numbers from start up to the next segment's start have the same answer. */
struct segment {
	uint32_t start;
	const struct policy_rule *checked; /* NULL: the answer is ret */
	uint32_t ret;
};

struct builder {
	const struct policy *p;
	struct filter *f;
	bool full;
	size_t n_segs;
	struct segment segs[2 * POLICY_RULES_MAX + 1];
};

static uint32_t ret_errno(int err)
{
	return err == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (uint32_t)err;
}

static void emit(struct builder *b, struct sock_filter insn)
{
	if (b->f->len == BPF_MAXINSNS)
		b->full = true;
	else
		b->f->prog[b->f->len++] = insn;
}

static void emit_ret(struct builder *b, uint32_t value)
{
	emit(b, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

static void emit_load(struct builder *b, uint32_t offset)
{
	emit(b, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

/*
 * One check: a comparison for each value, then the return of its errno, which is jumped over when
 * the check holds.
 */
static void emit_check(struct builder *b, const struct policy_check *c)
{
	emit_load(b, LOW_HALF(c->arg));
	if (c->mask != UINT32_MAX)
		emit(b, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask));
	for (uint32_t i = 0; i < c->count; i++) {
		uint32_t to_ret = c->count - 1 - i; /* 0 at the last value: the return is next */
		uint32_t hit = c->negate ? to_ret : to_ret + 1;
		uint32_t miss = c->negate && to_ret == 0 ? 1 : 0;

		emit(b, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						     b->p->values[c->first + i], (uint8_t)hit,
						     (uint8_t)miss));
	}
	emit_ret(b, ret_errno(c->err));
}

static void emit_leaf(struct builder *b, const struct segment *s)
{
	if (!s->checked) {
		emit_ret(b, s->ret);
		return;
	}
	for (size_t i = 0; i < b->p->n_checks; i++)
		if (&b->p->rules[b->p->checks[i].rule] == s->checked)
			emit_check(b, &b->p->checks[i]);
	emit_ret(b, SECCOMP_RET_ALLOW);
}

/* Segments lo to hi, with the number in the accumulator. The depth is log2 of the segments. */
static void emit_tree(struct builder *b, size_t lo, size_t hi)
{
	struct sock_filter *prog = b->f->prog;
	size_t mid = lo + (hi - lo + 1) / 2, at = b->f->len, left;

	if (lo == hi) {
		emit_leaf(b, &b->segs[lo]);
		return;
	}
	emit(b, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, b->segs[mid].start, 0, 0));
	emit_tree(b, lo, mid - 1);
	if (b->full)
		return;
	left = b->f->len - at - 1;
	if (left <= JUMP_MAX) {
		prog[at].jt = (uint8_t)left;
	} else {
		/* Too far for a conditional jump: it goes to a long one, put between. */
		emit_ret(b, 0);
		if (b->full)
			return;
		memmove(&prog[at + 2], &prog[at + 1], left * sizeof(*prog));
		prog[at].jf = 1;
		prog[at + 1] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)left);
	}
	emit_tree(b, mid, hi);
}

static void add_segment(struct builder *b, uint32_t start, const struct policy_rule *checked,
			uint32_t ret)
{
	const struct segment *last = b->n_segs ? &b->segs[b->n_segs - 1] : NULL;

	if (last && !checked && !last->checked && last->ret == ret)
		return;
	b->segs[b->n_segs++] = (struct segment){ start, checked, ret };
}

static int make_segments(struct builder *b, const struct filter_call *calls, size_t n_calls,
			 struct err *e)
{
	uint32_t other = ret_errno(b->p->default_err), next = 0;

	if (n_calls > POLICY_RULES_MAX)
		return err_say(e, -EINVAL, "%zu calls are more than a policy has", n_calls);
	for (size_t i = 0; i < n_calls; i++) {
		const struct policy_rule *rule = calls[i].rule;
		bool checked = rule->action == POLICY_CHECK;

		if (calls[i].nr < next || calls[i].nr >= FILTER_X32_BIT)
			return err_say(e, -EINVAL, "number %u of '%s' is not above that of '%s'",
				       calls[i].nr, rule->name,
				       i ? calls[i - 1].rule->name : "none");
		if (calls[i].nr > next)
			add_segment(b, next, NULL, other);
		add_segment(b, calls[i].nr, checked ? rule : NULL,
			    ret_errno(rule->action == POLICY_DENY ? rule->err : 0));
		next = calls[i].nr + 1;
	}
	add_segment(b, next, NULL, other);
	return 0;
}

int filter_build(const struct policy *p, uint32_t arch, const struct filter_call *calls,
		 size_t n_calls, struct filter *ret, struct err *e)
{
	struct builder b = { .p = p, .f = ret };
	int r;

	for (size_t i = 0; i < p->n_checks; i++)
		if (p->checks[i].count > JUMP_MAX)
			return err_say(e, -E2BIG, "a check of '%s' has more than %u values",
				       p->rules[p->checks[i].rule].name, JUMP_MAX);
	r = make_segments(&b, calls, n_calls, e);
	if (r < 0)
		return r;
	ret->len = 0;
	emit_load(&b, offsetof(struct seccomp_data, arch));
	emit(&b, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0));
	emit_ret(&b, ret_errno(p->foreign_err));
	emit_load(&b, offsetof(struct seccomp_data, nr));
	if (arch == AUDIT_ARCH_X86_64) {
		emit(&b,
		     (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FILTER_X32_BIT, 0, 1));
		emit_ret(&b, ret_errno(p->foreign_err));
	}
	emit_tree(&b, 0, b.n_segs - 1);
	if (b.full)
		return err_say(e, -E2BIG, "the filter is longer than %d instructions",
			       BPF_MAXINSNS);
	return 0;
}

uint32_t filter_eval(const struct sock_filter *prog, size_t len, const struct seccomp_data *d)
{
	uint32_t acc = 0;

	for (size_t at = 0; at < len; at++) {
		const struct sock_filter *in = &prog[at];

		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (in->k % 4 != 0 || in->k > sizeof(*d) - 4)
				return SECCOMP_RET_KILL_PROCESS;
			memcpy(&acc, (const char *)d + in->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			acc &= in->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += acc == in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			at += acc >= in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JA:
			at += in->k;
			break;
		case BPF_RET | BPF_K:
			return in->k;
		default:
			return SECCOMP_RET_KILL_PROCESS;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* A fixed sequence: the same build judges the same arguments. */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Arguments on, beside and far from what the checks of @rule name, with noise in the high half. */
static void make_args(const struct policy *p, const struct policy_rule *rule, uint64_t *rnd,
		      uint64_t args[6])
{
	/* A call without checks gets anything: should the filter confuse it with one that has
	 * checks, that one's refusals show. */
	bool plain = !rule || rule->action != POLICY_CHECK;

	for (int i = 0; i < 6; i++)
		args[i] = !plain && next_random(rnd) % 4 ? 0 : next_random(rnd);
	for (size_t i = 0; rule && i < p->n_checks; i++) {
		const struct policy_check *c = &p->checks[i];
		uint32_t v = p->values[c->first + next_random(rnd) % c->count], how;

		if (&p->rules[c->rule] != rule)
			continue;
		how = next_random(rnd) % 8;
		v |= how & 1 ? next_random(rnd) & ~c->mask : 0;
		v ^= how == 2 || how == 3 ? 1u << next_random(rnd) % 32 : 0;
		v += how == 4;
		args[c->arg] = v | (how > 5 ? (uint64_t)next_random(rnd) << 32 : 0);
	}
}

static int verify_one(const struct policy *p, const struct policy_rule *rule, int want,
		      const struct seccomp_data *d, const struct sock_filter *prog, size_t len,
		      struct err *e)
{
	uint32_t got = filter_eval(prog, len, d);

	if (got == ret_errno(want))
		return 0;
	return err_say(
		e, -EINVAL,
		"the filter says 0x%x to number %d (%s) arch 0x%x args %llx %llx %llx %llx, the "
		"policy says errno %d (default is %d)",
		got, d->nr, rule ? rule->name : "not listed", d->arch,
		(unsigned long long)d->args[0], (unsigned long long)d->args[1],
		(unsigned long long)d->args[2], (unsigned long long)d->args[3], want,
		p->default_err);
}

/*
 * Whose checks to make arguments for: its own, or for a call without checks now and then those of
 * its neighbours in the table, whose leaf a wrong comparison would lead to.
 */
static const struct policy_rule *aim_at(const struct filter_call *calls, size_t n_calls, size_t at,
					const struct policy_rule *rule, int i)
{
	if (rule && rule->action == POLICY_CHECK)
		return rule;
	if (i % 4 == 1 && at > 0)
		return calls[at - 1].rule;
	if (i % 4 == 2 && at + (rule ? 1 : 0) < n_calls)
		return calls[at + (rule ? 1 : 0)].rule;
	return rule;
}

int filter_verify(const struct policy *p, uint32_t arch, const struct filter_call *calls,
		  size_t n_calls, const struct sock_filter *prog, size_t len, struct err *e)
{
	uint64_t rnd = 1;
	size_t at = 0;

	for (uint32_t nr = 0; nr < 2048; nr++) {
		const struct policy_rule *rule = NULL;
		struct seccomp_data d = { .nr = (int)nr, .arch = arch };
		int tries, r = 0;

		while (at < n_calls && calls[at].nr < nr)
			at++;
		if (at < n_calls && calls[at].nr == nr)
			rule = calls[at].rule;
		tries = rule && rule->action == POLICY_CHECK ? 2000 : 64;
		for (int i = 0; r == 0 && i < tries; i++) {
			uint64_t args[6];

			make_args(p, aim_at(calls, n_calls, at, rule, i), &rnd, args);
			memcpy(d.args, args, sizeof(args));
			r = verify_one(p, rule, policy_decide(p, rule, args), &d, prog, len, e);
		}
		d.arch = arch ^ 0x80000000u; /* the 32-bit sibling, or nothing at all */
		if (r == 0)
			r = verify_one(p, rule, p->foreign_err, &d, prog, len, e);
		d.arch = arch;
		d.nr = (int)(nr | FILTER_X32_BIT);
		if (r == 0 && arch == AUDIT_ARCH_X86_64)
			r = verify_one(p, rule, p->foreign_err, &d, prog, len, e);
		if (r < 0)
			return r;
	}
	return 0;
}
