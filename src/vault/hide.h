/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hide.h - Keys for the operator's buckets, taken out of an environment.
 *
 * As with secrets (vault/source.h): the environment of a process can be read for as long as it
 * lives, and the daemon's processes inherit it. So these go on in memory that only those who are
 * handed it can read.
 */
#ifndef CAISSON_VAULT_HIDE_H
#define CAISSON_VAULT_HIDE_H

struct err;

/* Set to the number of the descriptor, for the front, which hands it to caisson-bucket alone. */
#define HIDE_FD_S3 "CAISSON_S3_KEYS_FD"

/*
 * hide_s3_keys() - Take AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or those of
 * the same meaning with COREASON_SANDBOX_S3_, out of @env, which is changed in place. Return: a
 * descriptor that is inherited, with lines of s3/creds.h; -1 when there are none; another negative
 * errno with a message.
 */
int hide_s3_keys(char **env, struct err *e);

#endif
