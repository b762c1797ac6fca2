/* SPDX-License-Identifier: Apache-2.0 */
/* blob.c - Mapping a sealed memfd with the strings of a request. */
#include "init/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "wire/init.h"

int blob_map(struct blob *b, int fd, uint32_t len)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	*b = (struct blob){ 0 };
	/* Sealed, so that the content cannot change after the checks, and no read can fault. */
	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_WRITE)) != (F_SEAL_SHRINK | F_SEAL_WRITE))
		return EPERM;
	if (len == 0 || len > INIT_BLOB_MAX || fstat(fd, &st) < 0 || st.st_size != (off_t)len)
		return EMSGSIZE;
	void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED)
		return errno;
	*b = (struct blob){ .map = map, .len = len };
	return ((const char *)map)[len - 1] == '\0' ? 0 : EINVAL;
}

void blob_unmap(struct blob *b)
{
	if (b->map)
		(void)munmap(b->map, b->len);
	*b = (struct blob){ 0 };
}

char *blob_next(const struct blob *b, size_t *at)
{
	char *s = (char *)b->map + *at;

	if (*at >= b->len)
		return NULL;
	*at += strlen(s) + 1;
	return s;
}
