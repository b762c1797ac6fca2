/* SPDX-License-Identifier: Apache-2.0 */
/* key.h - Keys of objects as names of files, and the other way round. Pure. */
#ifndef CAISSON_S3_KEY_H
#define CAISSON_S3_KEY_H

#include <stdbool.h>
#include <stddef.h>

#define S3_PART_MAX 255u /* of a file's name */

/*
 * s3_key_problem() - Why a key, without the place's prefix, can be no file's path; NULL: it can.
 * One that ends with
 * '/' names a directory.
 */
const char *s3_key_problem(const char *key, size_t len);

/* s3_key_show() - For messages: shortened, and only what can be printed. Return: @out. */
const char *s3_key_show(const char *key, size_t len, char *out, size_t size);

#endif
