/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill_disk.c - Fill a file system: bytes, inodes, depth.
 *
 * usage: fill_disk fallocate|write|small|sparse|inodes|names|deep LIMIT
 *
 * LIMIT bounds what is done where nothing stops it: MiB for the first four, a count for the others.
 * Works in the current directory. Prints how far it came and, if it was stopped, by which errno.
 * Exits 0 when it reached LIMIT, 28 for ENOSPC, 27 for EFBIG, 122 for EDQUOT, otherwise 99.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1024ul * 1024)

static char block[MIB];

static unsigned long fill_fallocate(unsigned long limit)
{
	int fd = open("big", O_CREAT | O_RDWR, 0600);
	unsigned long n = 0, step = 64 * 1024;

	while (n < limit * (MIB / step) && fallocate(fd, 0, (off_t)(n * step), (off_t)step) == 0)
		n++;
	return n / (MIB / step);
}

static int write_mib(int fd)
{
	for (size_t off = 0; off < sizeof(block);) {
		ssize_t n = write(fd, block + off, sizeof(block) - off);

		if (n <= 0)
			return -1;
		off += (size_t)n;
	}
	return 0;
}

static unsigned long fill_write(unsigned long limit)
{
	int fd = open("big", O_CREAT | O_RDWR, 0600);
	unsigned long n = 0;

	while (n < limit && write_mib(fd) == 0)
		n++;
	return n;
}

/* 256 files of 4 KiB make one MiB. */
static unsigned long fill_small(unsigned long limit)
{
	for (unsigned long i = 0; i < limit * 256; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "f%lu", i);
		int fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0600);

		if (fd < 0 || write(fd, block, 4096) != 4096)
			return i / 256;
		(void)close(fd);
	}
	return limit;
}

static unsigned long fill_sparse(unsigned long limit)
{
	int fd = open("sparse", O_CREAT | O_RDWR, 0600);
	unsigned long n = 0;

	if (ftruncate(fd, (off_t)(limit * MIB)) < 0)
		return 0;
	while (n < limit && pwrite(fd, block, MIB, (off_t)(n * MIB)) == (ssize_t)MIB)
		n++;
	if (n < limit && errno == 0)
		errno = ENOSPC; /* a short write: the next one would fail with it */
	return n;
}

static unsigned long fill_inodes(unsigned long limit)
{
	for (unsigned long i = 0; i < limit; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%lu", i);
		int fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0600);

		if (fd < 0)
			return i;
		(void)close(fd);
	}
	return limit;
}

static unsigned long fill_names(unsigned long limit)
{
	for (unsigned long i = 0; i < limit; i++) {
		char name[256];

		(void)snprintf(name, sizeof(name), "%0255lu", i);
		int fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0600);

		if (fd < 0)
			return i;
		(void)close(fd);
	}
	return limit;
}

static unsigned long fill_deep(unsigned long limit)
{
	for (unsigned long i = 0; i < limit; i++)
		if (mkdir("d", 0700) < 0 || chdir("d") < 0)
			return i;
	return limit;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned long (*fill)(unsigned long limit);
	} modes[] = {
		{ "fallocate", fill_fallocate }, { "write", fill_write },   { "small", fill_small },
		{ "sparse", fill_sparse },       { "inodes", fill_inodes }, { "names", fill_names },
		{ "deep", fill_deep },
	};

	if (argc < 3)
		return 97;
	unsigned long limit = strtoul(argv[2], NULL, 10);

	(void)memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]) != 0)
			continue;
		errno = 0;
		unsigned long n = modes[i].fill(limit);
		int e = n < limit ? errno : 0;

		(void)printf("%lu %s\n", n, e ? strerrorname_np(e) : "all");
		return e == 0 ? 0 : e == ENOSPC || e == EFBIG || e == EDQUOT ? e : 99;
	}
	return 97;
}
