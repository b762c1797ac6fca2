/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp-gen.c - Build-time compiler: a policy file in, a C header with the BPF program out.
 *
 * usage: seccomp-gen [--writable] POLICY NAME OUT.h [CALL...]
 *
 * NAME says whose filter it is: "cell" makes the array CELL_FILTER and CELL_FILTER_POLICY_ID,
 * "front" makes FRONT_FILTER and so on. The array is static, so each header belongs to one source
 * file. --writable keeps the policy's checks for cells that can write to a directory of the host;
 * without it the filter is that of all other cells. Each CALL is allowed although the policy
 * refuses it: for a process on its way into a cell, that puts the rest on itself later.
 *
 * The program is for the architecture this tool runs on. Names get their numbers from libseccomp,
 * or from the policy's own number directives where libseccomp is older than the call. A name that
 * the architecture does not have is noted on stderr and left out, so its number, if there ever is
 * one, answers the default. Before anything is written the program is run against the policy
 * (filter_verify()), so a wrong one fails the build.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/sha256.h"
#include "seccomp/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_LEN 31

static const struct {
	uint32_t scmp; /* libseccomp's token, which is the AUDIT_ARCH_ value */
	const char *name;
} arches[] = {
	{ SCMP_ARCH_X86_64, "x86_64" },
	{ SCMP_ARCH_AARCH64, "aarch64" },
};

/* The number of a call, or -1. The policy and libseccomp must not contradict each other. */
static int resolve(const struct policy *p, const char *name, uint32_t scmp, const char *arch,
		   struct err *e, bool *ret_clash)
{
	const struct policy_number *own = policy_find_number(p, name, arch);
	int nr = seccomp_syscall_resolve_name_arch(scmp, name);

	if (own && nr >= 0 && own->nr != (uint32_t)nr) {
		*ret_clash = true;
		return err_say(e, -EINVAL, "line %u: '%s' is number %d for libseccomp; correct it",
			       own->line, name, nr);
	}
	if (nr < 0)
		nr = own ? (int)own->nr : -1;
	return nr;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct filter_call *)a)->nr, y = ((const struct filter_call *)b)->nr;

	return x < y ? -1 : x > y;
}

static int resolve_all(const struct policy *p, uint32_t scmp, const char *arch,
		       struct filter_call calls[POLICY_RULES_MAX], size_t *ret_n, struct err *e)
{
	bool clash = false;

	*ret_n = 0;
	for (size_t i = 0; i < p->n_rules; i++) {
		int nr = resolve(p, p->rules[i].name, scmp, arch, e, &clash);

		if (clash)
			return nr;
		if (nr < 0) {
			fprintf(stderr, "seccomp-gen: note: %s has no '%s' (line %u)\n", arch,
				p->rules[i].name, p->rules[i].line);
			continue;
		}
		calls[(*ret_n)++] = (struct filter_call){ (uint32_t)nr, &p->rules[i] };
	}
	qsort(calls, *ret_n, sizeof(*calls), by_number);
	return 0;
}

/* The name of a filter is part of C names in both cases: letters and '_' only. */
static int to_upper(const char *name, char ret[NAME_MAX_LEN + 1], struct err *e)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len && len <= NAME_MAX_LEN; i++) {
		if (name[i] == '_')
			ret[i] = '_';
		else if (name[i] < 'a' || name[i] > 'z')
			len = 0;
		else
			ret[i] = (char)(name[i] - 'a' + 'A');
	}
	if (len == 0 || len > NAME_MAX_LEN)
		return err_say(e, -EINVAL, "'%s' names no filter; use 1 to %d of a-z and '_'", name,
			       NAME_MAX_LEN);
	ret[len] = '\0';
	return 0;
}

static int write_header(const char *path, const struct filter *f, const char *name,
			const char *arch, const char *id, struct err *e)
{
	char upper[NAME_MAX_LEN + 1];
	FILE *out;
	bool bad;

	if (to_upper(name, upper, e) < 0)
		return e->code;
	out = fopen(path, "we");
	if (!out)
		return err_set(e, -errno, "open '%s'", path);
	fprintf(out,
		"/* Made by tools/seccomp-gen.c from policy/%s.policy; do not edit. */\n"
		"#ifndef CAISSON_%s_FILTER_H\n#define CAISSON_%s_FILTER_H\n\n"
		"#include <linux/filter.h>\n\n",
		name, upper, upper);
	fprintf(out,
		"#ifndef __%s__\n#error \"this filter was made for %s\"\n#endif\n\n"
		"#define %s_FILTER %s_filter_%s\n#define %s_FILTER_POLICY_ID \"%s\"\n\n"
		"static const struct sock_filter %s_filter_%s[] = {\n",
		arch, arch, upper, name, arch, upper, id, name, arch);
	for (size_t i = 0; i < f->len; i++)
		fprintf(out, "\t{ 0x%02x, %u, %u, 0x%x },\n", f->prog[i].code, f->prog[i].jt,
			f->prog[i].jf, f->prog[i].k);
	fprintf(out, "};\n\n#endif\n");
	bad = ferror(out) != 0;
	if (fclose(out) != 0 || bad)
		return err_set(e, -EIO, "write '%s'", path);
	return 0;
}

static int allow_also(struct policy *p, char **calls, struct err *e)
{
	for (; *calls; calls++) {
		struct policy_rule *r = (struct policy_rule *)policy_find(p, *calls);

		if (!r || r->action != POLICY_DENY)
			return err_say(e, -EINVAL, "'%s' is not a call that the policy refuses",
				       *calls);
		r->action = POLICY_ALLOW;
	}
	return 0;
}

static int generate(bool writable, const char *in, const char *name, const char *out, char **also,
		    struct err *e)
{
	static char text[POLICY_TEXT_MAX + 1];
	static struct policy p;
	static struct filter f;
	static struct filter_call calls[POLICY_RULES_MAX];
	uint32_t scmp = seccomp_arch_native();
	const char *arch = NULL;
	size_t n_calls = 0;
	struct sha256 sha;
	uint8_t hash[32];
	char id[65];
	ssize_t len = fd_read_file(AT_FDCWD, in, text, sizeof(text));

	if (len < 0)
		return err_set(e, (int)len, "read '%s'", in);
	if (policy_parse(text, (size_t)len, &p, e) < 0 || allow_also(&p, also, e) < 0)
		return err_wrap(e, "%s", in);
	if (!writable)
		policy_drop_writable(&p);
	for (size_t i = 0; i < ARRAY_SIZE(arches); i++)
		if (arches[i].scmp == scmp)
			arch = arches[i].name;
	if (!arch)
		return err_say(e, -EINVAL, "no filter for this architecture (0x%x) yet", scmp);
	if (resolve_all(&p, scmp, arch, calls, &n_calls, e) < 0 ||
	    filter_build(&p, scmp, calls, n_calls, &f, e) < 0 ||
	    filter_verify(&p, scmp, calls, n_calls, f.prog, f.len, e) < 0)
		return err_wrap(e, "%s", in);
	sha256_init(&sha); /* `sha256sum cell.policy` gives the id that a receipt shows */
	sha256_add(&sha, text, (size_t)len);
	sha256_end(&sha, hash);
	hex_text(hash, sizeof(hash), id);
	return write_header(out, &f, name, arch, id, e);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };

	bool writable = argc > 1 && strcmp(argv[1], "--writable") == 0;

	if (writable)
		argc--, argv++;
	if (argc < 4) {
		fprintf(stderr, "usage: seccomp-gen [--writable] POLICY NAME OUT.h [CALL...]\n");
		return 2;
	}
	if (generate(writable, argv[1], argv[2], argv[3], argv + 4, &e) < 0) {
		fprintf(stderr, "seccomp-gen: %s\n", e.msg);
		return 1;
	}
	return 0;
}
