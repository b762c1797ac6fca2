/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - A parsed policy compiled to the BPF program that the kernel runs on every call.
 *
 * Used at build time and by tests. libseccomp gives the numbers but does not build the program: it
 * compares an argument once per rule, so it cannot say "ioctl, unless the low 32 bits are one of
 * these three" with an errno of its own for each check.
 */
#ifndef CAISSON_SECCOMP_FILTER_H
#define CAISSON_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct policy;
struct policy_rule;

/* On x86-64, numbers from here on are the x32 ABI's. */
#define FILTER_X32_BIT 0x40000000u

struct filter_call {
	uint32_t nr;
	const struct policy_rule *rule;
};

struct filter {
	size_t len;
	struct sock_filter prog[BPF_MAXINSNS];
};

/*
 * filter_build() - Compile @p for one architecture.
 * @arch:  an AUDIT_ARCH_ value
 * @calls: rules of @p by ascending number; a number twice is an error
 * @ret:   caller's, 32 KiB; undefined on failure
 *
 * Return: 0, or -EINVAL or -E2BIG with a message.
 */
int filter_build(const struct policy *p, uint32_t arch, const struct filter_call *calls,
		 size_t n_calls, struct filter *ret, struct err *e);

/*
 * filter_eval() - Run a program as the kernel would.
 * Return: the SECCOMP_RET_ value; SECCOMP_RET_KILL_PROCESS for a program the kernel would refuse.
 */
uint32_t filter_eval(const struct sock_filter *prog, size_t len, const struct seccomp_data *d);

/*
 * filter_verify() - Compare a program with the policy it should express.
 *
 * Every number up to 2047 with several arguments, each checked call with arguments on and around
 * the values of its checks, and calls of other architectures.
 * Return: 0, or -EINVAL with the first call that is judged otherwise.
 */
int filter_verify(const struct policy *p, uint32_t arch, const struct filter_call *calls,
		  size_t n_calls, const struct sock_filter *prog, size_t len, struct err *e);

#endif
