/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_init_command.c - Unpacking a request: every length is checked against the received size,
 * pointers into the blob stay inside it, and no refusal leaves a descriptor or a mapping behind.
 */
#include "base/fd.h"
#include "init/init_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"

#define BLOB "/workspace\0\0python3\0-c\0print(1)\0A=1\0B=\0"
#define BLOB_LEN (sizeof(BLOB) - 1)

static const struct init_exec good = {
	.argc = 3,
	.envc = 2,
	.blob_len = BLOB_LEN,
	.uid = 1000,
	.gid = 1001,
	.rows = 24,
	.cols = 80,
};

/* How many mappings of memfds called "blob" there are. */
static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "/memfd:blob") != NULL;
	(void)fclose(f);
	return n;
}

/* The descriptors of a message: the blob, then pipes. */
static size_t make_fds(int *fds, int blob, size_t n)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	if (n > 0)
		fds[0] = blob;
	else
		fd_close(blob);
	for (size_t i = 1; i < n; i++) {
		fds[i] = fcntl(ends[i % 2], F_DUPFD_CLOEXEC, 3);
		assert_true(fds[i] >= 0);
	}
	fd_close(ends[0]);
	fd_close(ends[1]);
	return n;
}

/* Unpack with @blob first and @n_fds in all; everything is given back afterwards. */
static int unpack_fds(const struct init_exec *x, int blob, size_t n_fds)
{
	int fds[FD_PASS_MAX], before = open_fds() - (blob >= 0 ? 1 : 0), maps = mappings();
	struct command c;

	memset(&c, 0xa5, sizeof(c));
	int r = command_unpack(x, fds, make_fds(fds, blob, n_fds), &c);

	assert_true(r >= 0); /* a positive errno, as it goes over the wire */
	command_free(&c);
	command_free(&c);
	assert_int_equal(open_fds(), before);
	assert_int_equal(mappings(), maps);
	return r;
}

static int unpack(const struct init_exec *x, const void *blob, size_t len)
{
	int fd = fd_memfd("blob", blob, len);

	assert_true(fd >= 0);
	return unpack_fds(x, fd, 4);
}

TEST(good)
{
	int fds[4], before = open_fds();
	struct command c;

	(void)make_fds(fds, fd_memfd("blob", BLOB, BLOB_LEN), 4);
	assert_int_equal(command_unpack(&good, fds, 4, &c), 0);
	assert_string_equal(c.cwd, "/workspace");
	assert_string_equal(c.script_path, "");
	assert_string_equal(c.argv[0], "python3");
	assert_string_equal(c.argv[1], "-c");
	assert_string_equal(c.argv[2], "print(1)");
	assert_null(c.argv[3]);
	assert_string_equal(c.envp[0], "A=1");
	assert_string_equal(c.envp[1], "B=");
	assert_null(c.envp[2]);
	assert_int_equal(c.script_fd, -1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(c.stdio[i], fds[i + 1]);
	assert_int_equal(c.uid, 1000);
	assert_int_equal(c.gid, 1001);
	assert_int_equal(c.rows, 24);
	assert_int_equal(c.cols, 80);
	/* The blob's descriptor is not kept: the mapping is enough. */
	assert_int_equal(open_fds(), before + 3);
	command_free(&c);
	assert_int_equal(open_fds(), before);
}

/* Which descriptors come is a matter of the flags, and it is exact. */
TEST(numbers_of_descriptors)
{
	for (uint32_t flags = 0; flags < 2 * INIT_PIPES; flags++) {
		size_t stdio = flags & (INIT_TTY | INIT_CONTROL | INIT_PIPES) ? 0 : 3;
		size_t want = 1u + (flags & INIT_SCRIPT ? 1 : 0) + stdio;
		/* A kernel has no terminal, and is not held: no combination is taken for another.
		 */
		bool refused = (flags & INIT_CONTROL && flags & (INIT_TTY | INIT_HOLD)) ||
			       (flags & INIT_PIPES && flags & (INIT_TTY | INIT_CONTROL));
		struct init_exec x = good;

		x.flags = flags;
		for (size_t n = 0; n <= FD_PASS_MAX; n++)
			assert_int_equal(unpack_fds(&x, fd_memfd("blob", BLOB, BLOB_LEN), n),
					 n == want && !refused ? 0 : EINVAL);
	}
}

/* A client that was taken over may hold these, and code in a cell must not, above all a directory.
 */
TEST(stdio_is_pipes)
{
	for (int at = 1; at < 4; at++) {
		const int others[] = {
			open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
			open("/dev/null", O_RDWR | O_CLOEXEC),
			open("/etc/passwd", O_RDONLY | O_CLOEXEC),
			socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
			memfd_create("file", MFD_CLOEXEC),
		};

		for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
			int fds[4], before = open_fds() - 1;
			struct command c;

			assert_true(others[i] >= 0);
			(void)make_fds(fds, fd_memfd("blob", BLOB, BLOB_LEN), 4);
			fd_close(fds[at]);
			fds[at] = others[i];
			assert_int_equal(command_unpack(&good, fds, 4, &c), EBADF);
			command_free(&c);
			assert_int_equal(open_fds(), before);
		}
	}
}

TEST(where_descriptors_go)
{
	struct init_exec x = good;
	struct command c;
	int fds[5];

	x.flags = INIT_SCRIPT;
	(void)make_fds(fds, fd_memfd("blob", BLOB, BLOB_LEN), 5);
	assert_int_equal(command_unpack(&x, fds, 5, &c), 0);
	assert_int_equal(c.script_fd, fds[1]);
	assert_int_equal(c.stdio[0], fds[2]);
	assert_int_equal(c.stdio[2], fds[4]);
	command_free(&c);

	static const uint32_t without_stdio[] = { INIT_TTY, INIT_CONTROL, INIT_PIPES };

	for (size_t k = 0; k < ARRAY_SIZE(without_stdio); k++) {
		x.flags = INIT_SCRIPT | without_stdio[k];
		(void)make_fds(fds, fd_memfd("blob", BLOB, BLOB_LEN), 2);
		assert_int_equal(command_unpack(&x, fds, 2, &c), 0);
		assert_int_equal(c.flags, x.flags);
		assert_int_equal(c.script_fd, fds[1]);
		for (int i = 0; i < 3; i++)
			assert_int_equal(c.stdio[i], -1);
		command_free(&c);
	}
}

TEST(unknown_flags)
{
	for (unsigned int bit = 5; bit < 32; bit++) {
		struct init_exec x = good;

		x.flags = 1u << bit;
		assert_int_equal(unpack(&x, BLOB, BLOB_LEN), EINVAL);
		x.flags |= INIT_HOLD;
		assert_int_equal(unpack(&x, BLOB, BLOB_LEN), EINVAL);
		/* With as many descriptors as the flags beside it call for. */
		x.flags = 1u << bit | INIT_CONTROL;
		assert_int_equal(unpack_fds(&x, fd_memfd("blob", BLOB, BLOB_LEN), 1), EINVAL);
	}
}

/* The announced length and the real one must be equal, and not too large. */
TEST(blob_lengths)
{
	static char large[INIT_BLOB_MAX + 1];
	struct init_exec x = good;

	for (uint32_t len = 0; len < 2 * BLOB_LEN; len++) {
		x.blob_len = len;
		assert_int_equal(unpack(&x, BLOB, BLOB_LEN), len == BLOB_LEN ? 0 : EMSGSIZE);
	}
	static const uint32_t absurd[] = { UINT32_MAX, 1u << 31, INIT_BLOB_MAX, INIT_BLOB_MAX + 1 };

	for (size_t i = 0; i < ARRAY_SIZE(absurd); i++) {
		x.blob_len = absurd[i];
		assert_int_equal(unpack(&x, BLOB, BLOB_LEN), EMSGSIZE);
	}
	x.blob_len = 0;
	assert_int_equal(unpack(&x, "", 0), EMSGSIZE);

	/* The largest, and one byte more. */
	memset(large, 'x', sizeof(large));
	memcpy(large, "/\0\0", 3);
	large[INIT_BLOB_MAX - 1] = '\0';
	x.argc = 1;
	x.envc = 0;
	x.blob_len = INIT_BLOB_MAX;
	assert_int_equal(unpack(&x, large, INIT_BLOB_MAX), 0);
	large[INIT_BLOB_MAX - 1] = 'x';
	large[INIT_BLOB_MAX] = '\0';
	x.blob_len = INIT_BLOB_MAX + 1;
	assert_int_equal(unpack(&x, large, INIT_BLOB_MAX + 1), EMSGSIZE);
}

/* Without the last NUL a string would have no end; whole pages have no zeros behind them. */
TEST(missing_nul)
{
	long page = sysconf(_SC_PAGESIZE);
	char *blob = malloc((size_t)page);
	struct init_exec x = good;

	assert_non_null(blob);
	x.blob_len = BLOB_LEN - 1;
	assert_int_equal(unpack(&x, BLOB, BLOB_LEN - 1), EINVAL);
	memset(blob, 'x', (size_t)page);
	memcpy(blob, "/\0\0", 3);
	x.argc = 1;
	x.envc = 0;
	x.blob_len = (uint32_t)page;
	assert_int_equal(unpack(&x, blob, (size_t)page), EINVAL);
	blob[page - 1] = '\0';
	assert_int_equal(unpack(&x, blob, (size_t)page), 0);
	free(blob);
}

/* Exactly as many strings as were announced: neither too few nor something left over. */
TEST(counts)
{
	for (uint32_t argc = 0; argc < 8; argc++)
		for (uint32_t envc = 0; envc < 8; envc++) {
			struct init_exec x = good;
			int want = argc == 0 ? E2BIG : argc + envc == 5 ? 0 : EINVAL;

			x.argc = argc;
			x.envc = envc;
			assert_int_equal(unpack(&x, BLOB, BLOB_LEN), want);
		}
}

TEST(absurd_counts)
{
	static const uint32_t absurd[] = { INIT_ARGS_MAX + 1, 1u << 31, UINT32_MAX };
	struct init_exec x = good;

	for (size_t i = 0; i < ARRAY_SIZE(absurd); i++) {
		x.argc = absurd[i];
		x.envc = 2;
		assert_int_equal(unpack(&x, BLOB, BLOB_LEN), E2BIG);
		x.argc = 3;
		x.envc = absurd[i];
		assert_int_equal(unpack(&x, BLOB, BLOB_LEN), E2BIG);
		/* No sum wraps around to something small. */
		x.argc = absurd[i];
		x.envc = 0u - absurd[i] + 5;
		assert_int_equal(unpack(&x, BLOB, BLOB_LEN), E2BIG);
	}
	x.argc = INIT_ARGS_MAX;
	x.envc = INIT_ARGS_MAX;
	assert_int_equal(unpack(&x, BLOB, BLOB_LEN), EINVAL); /* allowed, but not there */
}

/* As many as are allowed, each of them empty. */
TEST(most_strings)
{
	size_t len = 3 + 2 * (size_t)INIT_ARGS_MAX;
	char *blob = calloc(1, len);
	struct init_exec x = { .argc = INIT_ARGS_MAX,
			       .envc = INIT_ARGS_MAX,
			       .blob_len = (uint32_t)len };

	assert_non_null(blob);
	blob[0] = '/';
	assert_int_equal(unpack(&x, blob, len), 0);
	free(blob);
}

TEST(short_blobs)
{
	struct init_exec x = good;

	x.argc = 1;
	x.envc = 0;
	x.blob_len = 1;
	assert_int_equal(unpack(&x, "", 1), EINVAL); /* a cwd, no script path */
	x.blob_len = 2;
	assert_int_equal(unpack(&x, "/", 2), EINVAL);
	x.blob_len = 3;
	assert_int_equal(unpack(&x, "/\0", 3), EINVAL); /* both, but no argument */
	x.blob_len = 4;
	assert_int_equal(unpack(&x, "/\0\0", 4), 0); /* one argument, empty */
}

/* A working directory is an absolute path, or where would it start? */
TEST(cwd)
{
	static const struct {
		const char *blob;
		size_t len;
		int want;
	} rows[] = {
		{ "\0\0a\0", 4, EINVAL },
		{ "tmp\0\0a\0", 7, EINVAL },
		{ "./tmp\0\0a\0", 9, EINVAL },
		{ "/tmp\0\0a\0", 8, 0 },
	};
	struct init_exec x = { .argc = 1 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		x.blob_len = (uint32_t)rows[i].len;
		assert_int_equal(unpack(&x, rows[i].blob, rows[i].len), rows[i].want);
	}
}

static int memfd_with_seals(int seals)
{
	int fd = memfd_create("blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, BLOB, BLOB_LEN), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* A file that could change, or shrink and fault, while it is read is not read. */
TEST(seals)
{
	static const struct {
		int seals, want;
	} rows[] = {
		{ 0, EPERM },
		{ F_SEAL_SHRINK, EPERM },
		{ F_SEAL_WRITE, EPERM },
		{ F_SEAL_GROW | F_SEAL_SEAL, EPERM },
		{ F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, EPERM },
		{ F_SEAL_SHRINK | F_SEAL_WRITE, 0 },
		{ F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(unpack_fds(&good, memfd_with_seals(rows[i].seals), 4),
				 rows[i].want);
}

/* Anything but a memfd in its place. */
TEST(other_descriptors)
{
	int ends[2], pair[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(ends[1], BLOB, BLOB_LEN), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	int others[] = {
		ends[0],
		ends[1],
		pair[0],
		open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		open("/", O_PATH | O_CLOEXEC),
		open("/dev/zero", O_RDWR | O_CLOEXEC),
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_true(others[i] >= 0);
		assert_int_equal(unpack_fds(&good, others[i], 4), EPERM);
	}
	fd_close(pair[1]);
}

/* A memfd of which only the read side can be opened is as good as any. */
TEST(read_only_copy)
{
	char path[64];
	int fd = fd_memfd("blob", BLOB, BLOB_LEN);

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int copy = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(copy >= 0);
	fd_close(fd);
	assert_int_equal(unpack_fds(&good, copy, 4), 0);
}

/* Random counts, lengths and bytes: never more than a refusal. The seed is fixed. */
TEST(noise)
{
	unsigned int seed = 11;
	int accepted = 0;

	for (int round = 0; round < 3000; round++) {
		char blob[64];
		size_t len = 1 + (size_t)rand_r(&seed) % sizeof(blob);
		struct init_exec x = { .argc = (uint32_t)rand_r(&seed) % 6,
				       .envc = (uint32_t)rand_r(&seed) % 6,
				       .blob_len = (uint32_t)len };

		for (size_t i = 0; i < len; i++)
			blob[i] = "/a\0\0\0"[rand_r(&seed) % 5];
		accepted += unpack(&x, blob, len) == 0;
	}
	assert_true(accepted > 0);
}
