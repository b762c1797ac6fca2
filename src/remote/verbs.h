/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - One function per verb. argv[0] is the verb; the return value is the exit code. */
#ifndef CAISSON_REMOTE_VERBS_H
#define CAISSON_REMOTE_VERBS_H

#include "client/fail.h"

int verb_approve(int argc, char **argv);
int verb_audit(int argc, char **argv);

int verb_cp(int argc, char **argv);
int verb_create(int argc, char **argv);
int verb_exec(int argc, char **argv);
int verb_install(int argc, char **argv);
int verb_kill(int argc, char **argv);
int verb_logs(int argc, char **argv);
int verb_mcp(int argc, char **argv);
int verb_net(int argc, char **argv);
int verb_port(int argc, char **argv);
int verb_ps(int argc, char **argv);
int verb_rm(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_shell(int argc, char **argv);
int verb_stop(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_workspace(int argc, char **argv);

#endif
