/* SPDX-License-Identifier: Apache-2.0 */
/* private.c - The checks on a file that only its owner may change, and locked memory. */
#include "base/private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

int private_check(int fd, bool secret, uid_t uid, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "look at it");
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "must be a plain file");
	if (st.st_mode & (secret ? 077 : 022))
		return err_say(e, -EPERM, "others can %schange it (mode %03o): chmod %s it",
			       secret ? "read or " : "", (unsigned)st.st_mode & 0777,
			       secret ? "600" : "go-w");
	if (st.st_uid != 0 && st.st_uid != uid)
		return err_say(e, -EPERM, "belongs to another user (uid %u)", (unsigned)st.st_uid);
	return 0;
}

int private_open(const char *path, struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r = fd < 0 ? err_set(e, -errno, "cannot be opened") :
			 private_check(fd, true, geteuid(), e);

	return r < 0 ? r : TAKE_FD(fd);
}

void *private_alloc(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, size, MADV_DONTDUMP);
	(void)mlock(p, size);
	return p;
}

void private_free(void *p, size_t size)
{
	if (!p)
		return;
	explicit_bzero(p, size);
	(void)munmap(p, size);
}
