/* SPDX-License-Identifier: Apache-2.0 */
/* mount_word.c - See mount_word.h. */
#include "front/policy/mount_word.h"
#include "cell/spec.h"

#include <stdio.h>
#include <string.h>

const char *const mount_suffix[] = { [MOUNT_ANY] = "", [MOUNT_RO] = ":ro", [MOUNT_RW] = ":rw" };

bool mount_word_parse(const char *text, struct mount_word *ret)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	*ret = (struct mount_word){ .mode = MOUNT_ANY };
	if (colon && strcmp(colon, mount_suffix[MOUNT_RO]) == 0)
		ret->mode = MOUNT_RO;
	else if (colon && strcmp(colon, mount_suffix[MOUNT_RW]) == 0)
		ret->mode = MOUNT_RW;
	else if (colon)
		return false;
	if (len >= CELL_DST_MAX || memchr(text, ':', len)) /* --mount takes no place with a colon */
		return false;
	memcpy(ret->place, text, len);
	return spec_path_normal(ret->place, CELL_DST_MAX);
}
