/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_send.c - Sends messages to a kernel: they wait until its pipe has room.
 *
 * No flag of the pipe can block the daemon, as in kernel_pipes.c. A kernel that does not read has
 * KERNEL_PENDING_MAX bytes of messages at most, and an idle one much less (kernel_pipes_check()).
 */
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/foreign.h"
#include "front/cell/kernel_pipes_int.h"

/*
 * The other end of the kernel's input is closed. Mostly the kernel just died, and the cell reports
 * its end. If it still lives a moment later, it is broken: every execution would wait until its
 * deadline.
 */
static void went_deaf(struct kernel_pipes *k)
{
	k->deaf = true;
	k->half = false;
	buf_clear(&k->pending);
	loop_del(&k->in);
	timer_after(k->loop, &k->slow, KERNEL_SLOW_NS);
}

/*
 * Note whether a message may be half written, before it is: a front that is killed cannot note it
 * any more. Up to PIPE_BUF bytes go into a pipe at once or not at all.
 */
static void tell(struct kernel_pipes *k)
{
	bool half = k->half || k->pending.len > PIPE_BUF;

	if (k->writing)
		__atomic_store_n(k->writing, half && k->pending.len > 0, __ATOMIC_RELEASE);
}

static void flush(struct kernel_pipes *k)
{
	tell(k);
	while (k->pending.len > 0) {
		ssize_t n =
			foreign_write(k->in.fd, k->pending.data, k->pending.len, &k->stalled_ns);

		if (n == -EAGAIN) {
			kernel_pipes_shrink(&k->pending);
			loop_mod(&k->in, EPOLLOUT);
			return;
		}
		if (n < 0) {
			went_deaf(k);
			tell(k);
			return;
		}
		buf_consume(&k->pending, (size_t)n);
		k->half = k->pending.len > 0;
	}
	k->half = false;
	tell(k);
	kernel_pipes_shrink(&k->pending);
	loop_mod(&k->in, 0);
}

void kernel_send_ready(struct watch *w, uint32_t events)
{
	struct kernel_pipes *k = w->arg;

	if (events & (EPOLLERR | EPOLLHUP)) {
		went_deaf(k);
		return;
	}
	flush(k);
	kernel_pipes_check(k);
	if (!k->over && !k->deaf && k->pending.len == 0 && k->ops->drained)
		k->ops->drained(k);
}

void kernel_pipes_send(struct kernel_pipes *k, const struct buf *json)
{
	if (k->over || k->deaf || k->in.fd < 0 || !k->in.loop)
		return; /* the kernel is ending, which the cell reports */
	if (json->err || buf_append(&k->pending, json->data, json->len) < 0 ||
	    buf_puts(&k->pending, "\n") < 0) {
		kernel_pipes_broken(k, "the kernel does not read what it is sent", false);
		return;
	}
	flush(k);
	kernel_pipes_check(k);
}

void kernel_pipes_tell(struct kernel_pipes *k, uint32_t *writing)
{
	k->writing = writing;
	tell(k);
}
