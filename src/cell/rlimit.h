/* SPDX-License-Identifier: Apache-2.0 */
/* rlimit.h - Per-process limits of a command: the layer under the cgroup. */
#ifndef CAISSON_CELL_RLIMIT_H
#define CAISSON_CELL_RLIMIT_H

struct init_config;

/*
 * rlimit_apply() - Set every limit of the table on this process, soft and hard alike.
 *
 * Only ever lowers: where the caller's own hard limit is below ours, that stays (raising needs
 * CAP_SYS_RESOURCE, which even root may lack). System calls only. Return: 0 or -errno.
 */
int rlimit_apply(const struct init_config *c);

#endif
