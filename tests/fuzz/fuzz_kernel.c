/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_kernel.c - Bytes that a kernel writes on its channel: any bytes, in pieces of any size.
 *
 * The input goes through a real pipe; its first byte chooses the cuts. Checked: every message that
 * is handed up is an object with a type, nothing comes after the kernel was reported as broken,
 * which happens once, and the same bytes give the same messages with any cuts.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/cell/kernel_pipes.h"
#include "fuzz.h"

#define INPUT_MAX 60000u /* fits into a pipe */

struct seen {
	size_t messages, broken;
	uint64_t types; /* a sum over the texts of the types, in order */
	bool detach;    /* the owner lets go at the first message */
};

static void on_message(struct kernel_pipes *k, const char *type, json_t *m)
{
	struct seen *s = k->owner;

	require(type && json_is_object(m) && s->broken == 0);
	s->messages++;
	for (; *type; type++)
		s->types = s->types * 31 + (unsigned char)*type;
	if (s->detach)
		kernel_pipes_detach(k);
}

static void on_output(struct kernel_pipes *k, enum kernel_stream stream, const char *data,
		      size_t len)
{
	(void)k;
	(void)stream;
	(void)data;
	(void)len;
}

static void on_broken(struct kernel_pipes *k, const char *why, bool closed)
{
	struct seen *s = k->owner;

	(void)closed;
	require(why && s->broken++ == 0);
}

static const struct kernel_pipes_ops ops = { .message = on_message,
					     .output = on_output,
					     .broken = on_broken };

static struct seen run(const uint8_t *data, size_t size, size_t step, bool detach)
{
	struct seen s = { .detach = detach };
	struct loop loop;
	struct kernel_pipes k;
	int pipes[4][2], host[KERNEL_FDS];

	require(loop_init(&loop, NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++)
		require(pipe2(pipes[i], O_CLOEXEC) == 0);
	host[KERNEL_FD_IN] = pipes[0][1];
	host[KERNEL_FD_OUT] = pipes[1][0];
	host[KERNEL_FD_STDOUT] = pipes[2][0];
	host[KERNEL_FD_STDERR] = pipes[3][0];
	require(kernel_pipes_attach(&k, &loop, &ops, &s, host, NULL) == 0);
	for (size_t at = 0; at < size && !k.over; at += step) {
		size_t n = size - at < step ? size - at : step;

		require(write(pipes[1][1], data + at, n) == (ssize_t)n);
		k.out.fn(&k.out, EPOLLIN);
	}
	kernel_pipes_detach(&k);
	loop_free(&loop);
	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++)
		fd_close(pipes[i][i == 0 ? 0 : 1]);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > INPUT_MAX)
		return 0;
	size_t step = data[0] ? data[0] : INPUT_MAX;
	struct seen whole = run(data + 1, size - 1, INPUT_MAX, false);
	struct seen cut = run(data + 1, size - 1, step, false);

	require(whole.messages == cut.messages && whole.types == cut.types &&
		whole.broken == cut.broken);
	(void)run(data + 1, size - 1, step, true);
	return 0;
}
