/* SPDX-License-Identifier: Apache-2.0 */
/* test_workspace_store.c - The link to the workspace store when the front has no free
 * descriptor. */
#include "front/workspaces/workspace_store.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "base/fd.h"

struct asked {
	struct workspace_store_call call;
	int replies, code, fd;
};

static struct loop loop;
static struct workspace_store store;
static int peer;

static void on_reply(struct workspace_store_call *c, const struct workspace_store_reply *r, int *fd)
{
	struct asked *a = (struct asked *)c;

	a->replies++;
	a->code = r->code;
	a->fd = *fd;
}

static void stop(struct deferred *d)
{
	loop_stop(d->arg);
}

/* One request and its reply, with a descriptor, in one round of the loop. */
static struct asked exchange(rlim_t descriptors)
{
	struct asked a = { .call.fn = on_reply };
	struct workspace_store_req q = { .op = WORKSPACE_STORE_OPEN };
	struct workspace_store_reply r = { .version = WORKSPACE_STORE_VERSION,
					   .op = WORKSPACE_STORE_OPEN };
	struct deferred d = { .fn = stop, .arg = &loop };
	struct rlimit whole, few;
	size_t n_fds = 0;
	const int standard_input = 0;

	assert_int_equal(workspace_store_ask(&store, &a.call, &q, -1), 0);
	assert_int_equal(fd_recv(peer, &q, sizeof(q), NULL, &n_fds), sizeof(q));
	r.seq = q.seq;
	assert_int_equal(fd_send(peer, &r, sizeof(r), &standard_input, 1), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	few = whole;
	few.rlim_cur = descriptors < few.rlim_cur ? descriptors : few.rlim_cur;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	loop_defer(&loop, &d);
	assert_int_equal(loop_run(&loop, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
	return a;
}

TEST(no_free_descriptor)
{
	int pair[2], free_fd;

	assert_int_equal(loop_init(&loop, NULL), 0);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	peer = pair[1];
	service_link_init(&store.link, &workspace_store_service, pair[0]);
	assert_int_equal(service_link_start(&store.link, &loop, NULL), 0);
	free_fd = dup(0); /* the lowest free number */
	assert_true(free_fd >= 0);
	fd_close(free_fd);

	struct asked a = exchange((rlim_t)free_fd);

	assert_int_equal(a.replies, 1);
	assert_int_equal(a.fd, -1);
	assert_true(store.link.watch.fd >= 0); /* the others still get their replies */
	a = exchange(RLIM_INFINITY);
	assert_int_equal(a.replies, 1);
	assert_true(a.fd >= 0);
	service_link_free(&store.link);
	loop_free(&loop);
	fd_close(peer);
}
