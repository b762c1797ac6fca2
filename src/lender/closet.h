/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closet.h - Looking into the layers of an image that is not mounted: which programs there are, who a user is.
 *
 * What it finds is a hint, for messages and defaults: layers are the work of strangers, and the cell decides.
 * Nothing outside of a layer is ever reached, whatever its links say.
 */
#ifndef CAISSON_LENDER_CLOSET_H
#define CAISSON_LENDER_CLOSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* closet_has() - Is there a program @name in a directory of @path ("/usr/bin:/bin")? An absolute name is looked for there. */
bool closet_has(const int *layers, size_t n, const char *path, const char *name);

/*
 * closet_user() - The numbers of "name", "1000", "name:group", "1000:1000". "": 0.
 * A name that the image does not have is an error.
 */
int closet_user(const int *layers, size_t n, const char *user, uint32_t *uid, uint32_t *gid,
		struct err *e);

#endif
