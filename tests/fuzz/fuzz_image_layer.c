/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_image_layer.c - Any bytes as a layer's archive, unpacked into a directory. Beside that
 * directory is a file: for every archive, it stays unchanged and alone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "fuzz.h"
#include "image/image_store.h"
#include "image/unpack.h"

static char place[] = "/tmp/caisson-fuzz-layer-XXXXXX";
static int dir = -1;

static void clean(void)
{
	(void)tree_remove(AT_FDCWD, place, NULL);
}

static void set_up(void)
{
	require(mkdtemp(place) != NULL);
	(void)atexit(clean);
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(dir >= 0);
	fd_close(openat(dir, "outside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void check_outside(void)
{
	struct stat st;
	const struct dirent *en;
	int names = 0;
	DIR *d = opendir(place);

	require(d && fstatat(dir, "outside", &st, AT_SYMLINK_NOFOLLOW) == 0);
	require(S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 1 &&
		(st.st_mode & 07777) == 0600);
	while ((en = readdir(d)))
		names++;
	(void)closedir(d);
	require(names == 4); /* ".", "..", "outside", "root" */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unpack_limits limits = { 1 << 20, 1000, false };
	struct unpack_report report = { 0 };
	struct err e = { 0 };

	if (dir < 0)
		set_up();
	_fd_ int archive = fd_memfd("layer", data, size);

	require(archive >= 0 && mkdirat(dir, "root", 0755) == 0);
	_fd_ int root = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	require(root >= 0);
	_fd_ int plain = memfd_create("plain", MFD_CLOEXEC);

	require(plain >= 0);
	if (unpack_inflate(archive, plain, &e) == 0 && lseek(plain, 0, SEEK_SET) == 0 &&
	    unpack(plain, root, &limits, &report, &e) == 0)
		require(report.entries <= limits.entries && report.bytes <= limits.bytes);
	else
		require(e.msg[0]);
	check_outside();
	require(tree_remove(dir, "root", NULL) == 0);
	return 0;
}
