/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - Where secrets come from: a file, variables of the environment, the output of a
 * command.
 *
 * A child of the caller reads them, with the rights of the daemon's starter, hands over two
 * descriptors and ends. So no process that stays has secrets in its memory that only the gate may
 * know.
 */
#ifndef CAISSON_VAULT_SOURCE_H
#define CAISSON_VAULT_SOURCE_H

#include <sys/types.h>

struct err;

/* Set to the number of a descriptor that holds secrets of the environment and of package indexes:
 * source_hide(). */
#define SOURCE_FD_ENV "CAISSON_SECRETS_FD"

/* Each may be NULL. */
struct sources {
	const char *file;    /* lines of vault.h */
	const char *prefix;  /* of variables; what follows it is the secret's name */
	const char *command; /* words; it prints lines of vault.h. No shell reads it */
};

/*
 * source_begin() - Start the child that reads all of them.
 * @ret_sock: readable when it is done; the caller's
 * Return: its pid, 0 when there is no source, or a negative errno.
 */
pid_t source_begin(const struct sources *s, char **env, int *ret_sock, struct err *e);

/*
 * source_finish() - The result of the child; waits for it. @sock is closed.
 * @ret_whole, @ret_blind: as of vault_seal(), without and with @blind
 * Return: 0, or a negative errno with a message that names the option, and never a value.
 */
int source_finish(pid_t pid, int sock, int *ret_whole, int *ret_blind, struct err *e);

/*
 * source_prefix_problem() - NULL, or what is wrong with it as a prefix: it must end with '_', and
 * not take the daemon's own settings for secrets.
 */
const char *source_prefix_problem(const char *prefix);

/*
 * source_hide() - For the program that becomes the daemon: take variables with @prefix (NULL: none)
 * out of @env, which is changed in place, and put them, and the secrets of @lines (vault.h), into a
 * memfd that is inherited. Return: its descriptor, -1 without variables and secrets, or another
 * negative errno with a message.
 */
int source_hide(const char *prefix, char **env, const char *lines, struct err *e);

/* Set to the number of the descriptor of source_hide_s3(); the front passes that to caisson-bucket
 * alone. */
#define SOURCE_FD_S3 "CAISSON_S3_KEYS_FD"

/*
 * source_hide_s3() - Take AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the
 * keys of COREASON_SANDBOX_S3_, out of @env, which is changed in place. Return: a descriptor that
 * is inherited, with lines of s3/sign.h; -1 without keys; another negative errno with a message.
 */
int source_hide_s3(char **env, struct err *e);

#endif
