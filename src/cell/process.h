/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - The attributes that every process of a command starts with: limits and signals. */
#ifndef CAISSON_CELL_PROCESS_H
#define CAISSON_CELL_PROCESS_H

struct init_config;

/*
 * process_limit() - Set every limit of INIT_LIMITS (wire/init.h) on this process, soft and hard
 * alike: the layer under the cgroup.
 *
 * Only ever lowers: where the caller's own hard limit is below ours, that stays (raising needs
 * CAP_SYS_RESOURCE, which even root may lack). System calls only. Return: 0 or -errno.
 */
int process_limit(const struct init_config *c);

/* process_reset_signals() - Every signal gets its default action. Blocked signals stay blocked. */
void process_reset_signals(void);

#endif
