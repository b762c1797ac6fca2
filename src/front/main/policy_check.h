/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_check.h - `caisson policy check FILE`: what the daemon would say of it, without a daemon.
 */
#ifndef CAISSON_FRONT_POLICY_CHECK_H
#define CAISSON_FRONT_POLICY_CHECK_H

/* policy_verb() - argv[0] is "policy". The exit code: 0 good, 1 not, 125 not readable or used
 * wrongly. */
int policy_verb(int argc, char **argv, char **env);

#endif
