/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_init.c - Requests to init: any numbers, any descriptors, any blob.
 *
 * Checked for what is accepted: every string begins and ends inside the blob, the counts are those
 * of the request, and the order is the blob's. For everything: no descriptor and no mapping stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "init/init_command.h"

#define FDS_LOOKED_AT 64

/* The head of an input; the rest is the blob. */
struct head {
	uint8_t flags[2];
	uint8_t seals; /* of the memfd; the top bit: an eventfd instead */
	uint8_t n_fds;
	uint8_t argc[4], envc[4];
	uint8_t len[4]; /* added to the true length of the blob */
};

static uint32_t word(const uint8_t b[4])
{
	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static int new_fd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	require(fd >= 0);
	return fd;
}

static int lowest_free(void)
{
	int fd = new_fd();

	(void)close(fd);
	return fd;
}

/* How many descriptors there are from the lowest free one on: the same before and after. */
static size_t open_above(int lowest)
{
	size_t n = 0;

	for (int fd = lowest; fd < lowest + FDS_LOOKED_AT; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int make_blob(const struct head *h, const uint8_t *blob, size_t len)
{
	int fd;

	if (h->seals & 0x80)
		return new_fd();
	fd = memfd_create("blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	require(fd >= 0 && fd_write_all(fd, blob, len) == 0);
	require(fcntl(fd, F_ADD_SEALS, h->seals & 15) == 0);
	return fd;
}

/* @s has to be the next string of the blob; moves *@at behind it. */
static void check_string(const struct command *c, const char *s, size_t *at)
{
	size_t left = c->blob.len - *at;

	require(s == (const char *)c->blob.map + *at);
	size_t n = strnlen(s, left);

	require(n < left);
	*at += n + 1;
}

static void check_accepted(const struct init_exec *x, const struct command *c, const uint8_t *blob,
			   size_t len)
{
	size_t at = 0;

	require(x->argc > 0 && x->blob_len == len && c->blob.len == len);
	require(memcmp(c->blob.map, blob, len) == 0);
	require(c->cwd[0] == '/');
	check_string(c, c->cwd, &at);
	check_string(c, c->script_path, &at);
	for (uint32_t i = 0; i < x->argc; i++)
		check_string(c, c->argv[i], &at);
	require(c->argv[x->argc] == NULL);
	for (uint32_t i = 0; i < x->envc; i++)
		check_string(c, c->envp[i], &at);
	require(c->envp[x->envc] == NULL);
	require(at == len);
	require((x->flags &
		 ~(uint32_t)(INIT_TTY | INIT_HOLD | INIT_SCRIPT | INIT_CONTROL | INIT_PIPES)) == 0);
	require(!(x->flags & INIT_CONTROL) || !(x->flags & (INIT_TTY | INIT_HOLD)));
	require(!(x->flags & INIT_PIPES) || !(x->flags & (INIT_TTY | INIT_CONTROL)));
	require((c->script_fd >= 0) == !!(x->flags & INIT_SCRIPT));
	for (int i = 0; i < 3; i++)
		require((c->stdio[i] >= 0) == !(x->flags & (INIT_TTY | INIT_CONTROL | INIT_PIPES)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct head h;
	struct command c;
	int fds[FD_PASS_MAX], lowest = lowest_free();
	size_t before = open_above(lowest);

	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	data += sizeof(h);
	size -= sizeof(h);
	struct init_exec x = {
		.flags = (uint32_t)(h.flags[0] | h.flags[1] << 8),
		.argc = word(h.argc),
		.envc = word(h.envc),
		.blob_len = (uint32_t)size + word(h.len),
	};
	size_t n_fds = h.n_fds % (FD_PASS_MAX + 1);

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = i == 0 ? make_blob(&h, data, size) : new_fd();
	int r = command_unpack(&x, fds, n_fds, &c);

	require(r >= 0);
	if (r == 0)
		check_accepted(&x, &c, data, size);
	void *map = c.blob.map;

	command_free(&c);
	command_free(&c);
	require(lowest_free() == lowest && open_above(lowest) == before); /* none leaked */
	require(!map || (msync(map, 1, MS_ASYNC) < 0 && errno == ENOMEM));
	return 0;
}
