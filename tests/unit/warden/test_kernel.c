/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel.c - Kernels, from the request to their end: the cells that may get them, their
 * number, the answer to the client when something dies meanwhile, and that a cell dies with its
 * kernel, in time.
 *
 * The warden is this process, the zygote is the test, cells and kernels are real processes.
 */
#include "warden_kit.h"

#include "../unit.h"

/* As a zygote: read a request and fork a kernel for it. @ret: the answer, not sent yet. */
static pid_t serve(int peer, struct zygote_reply *ret)
{
	struct zygote_req q;
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);

	CHILD_CHECK(fd_recv(peer, &q, sizeof(q), fds, &n_fds) == (ssize_t)sizeof(q));
	CHILD_CHECK(n_fds == ZYGOTE_FD_CGROUPS);
	*ret = (struct zygote_reply){ .seq = q.seq, .pid = kit_kernel(fds[0]) };
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	return ret->pid;
}

static void say(int peer, struct zygote_reply reply)
{
	CHILD_CHECK(fd_send(peer, &reply, sizeof(reply), NULL, 0) == 0);
}

static bool nothing_asked(int peer)
{
	char byte;

	return recv(peer, &byte, 1, 0) < 0 && errno == EAGAIN;
}

/* A kernel in @c, asked for, forked and answered for. */
static struct kit_answer *make_kernel(const struct cell *c, int peer)
{
	struct zygote_reply reply;
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, c->zygote);

	(void)serve(peer, &reply);
	say(peer, reply);
	struct kit_answer *a = answer_to(seq);

	CHILD_CHECK(a->reply.code == 0 && a->reply.cell == c->handle);
	CHILD_CHECK(a->n_fds == 2 + KERNEL_PIPES);
	return a;
}

static struct cell_usage usage_of(uint32_t cell)
{
	const struct kit_answer *a = answer_to(ask(WARDEN_USAGE, cell, 0));

	CHILD_CHECK(a->reply.code == 0);
	return a->reply.usage;
}

/* ---- which cells, and how many --------------------------------------------------------------- */

CHILD_TEST(whose_cell)
{
	int one_peer, two_peer;

	kit_start();
	struct zygote *one = kit_zygote(0, &one_peer), *two = kit_zygote(1, &two_peer);
	struct cell *c = kit_cell(0, one), *nobodys = kit_cell(1, NULL);

	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, c->handle, two->handle)) == -ENOENT);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, c->handle, 0)) == -ENOENT);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, c->handle, one->handle ^ 1u << 12)) == -ENOENT);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, nobodys->handle, one->handle)) == -ENOENT);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, nobodys->handle, 0)) == -ENOENT);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, c->handle + 1, one->handle)) == -ENOENT);
	CHILD_CHECK(nothing_asked(one_peer) && nothing_asked(two_peer));
	/* Nor may one zygote answer for another's cell. */
	struct zygote_reply reply;
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, one->handle);

	(void)serve(one_peer, &reply);
	say(two_peer, reply);
	kit_rest();
	CHILD_CHECK(!heard(seq) && c->kernel == KERNEL_NONE);
	say(one_peer, reply);
	CHILD_CHECK(code_of(seq) == 0 && c->kernel == KERNEL_RUNS);
	kit_end();
}

CHILD_TEST(one_at_a_time)
{
	int peer;
	struct zygote_reply reply;

	kit_start();
	struct zygote *z = kit_zygote(7, &peer);
	struct cell *c = kit_cell(9, z);
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, z->handle);

	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, c->handle, z->handle)) == -EBUSY); /* on its way */
	pid_t pid = serve(peer, &reply);

	CHILD_CHECK(nothing_asked(peer));
	say(peer, reply);
	CHILD_CHECK(code_of(seq) == 0);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, c->handle, z->handle)) == -EBUSY); /* there */
	CHILD_CHECK(usage_of(c->handle).kernel == KERNEL_RUNS);
	/* A second answer to one question changes nothing. */
	say(peer, (struct zygote_reply){ .seq = reply.seq, .pid = getpid() });
	say(peer, (struct zygote_reply){ .seq = reply.seq, .code = -EIO });
	kit_rest();
	CHILD_CHECK(c->kernel_pid == pid);

	kit_make_zombie(pid);
	const struct kit_answer *next = make_kernel(c, peer); /* before its event was handled */

	CHILD_CHECK(next->reply.code == 0 && c->kernel_pid != pid);
	kit_end();
}

/* The client gets the socket on which the kernel sends its hello, the kernel, and its pipes. */
CHILD_TEST(descriptors)
{
	int peer, fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	struct zygote_req q;
	char byte = 0;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z);
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, z->handle);

	CHILD_CHECK(fd_recv(peer, &q, sizeof(q), fds, &n_fds) == (ssize_t)sizeof(q));
	CHILD_CHECK(n_fds == ZYGOTE_FD_CGROUPS);
	pid_t pid = kit_kernel(fds[0]);
	struct pollfd quiet = { .fd = fds[1], .events = POLLIN };

	CHILD_CHECK(poll(&quiet, 1, 0) == 0); /* the kernel may not go on yet */

	say(peer, (struct zygote_reply){ .seq = q.seq, .pid = pid });
	const struct kit_answer *a = answer_to(seq);

	CHILD_CHECK(a->reply.code == 0 && a->n_fds == 2 + KERNEL_PIPES);
	CHILD_CHECK(recv(fds[1], &byte, 1, 0) == 1); /* now it may */
	CHILD_CHECK(send(fds[1], "h", 1, 0) == 1 && recv(a->fds[0], &byte, 1, 0) == 1);
	for (size_t i = 1; i < n_fds; i++)
		fd_close(fds[i]);
	CHILD_CHECK(recv(a->fds[0], &byte, 1, 0) == 0); /* the warden has no copy of either end */
	CHILD_CHECK(read(a->fds[2 + KERNEL_PIPE_OUT], &byte, 1) == 0);
	CHILD_CHECK(c->hello_fd == -1);
	CHILD_CHECK(syscall(SYS_pidfd_send_signal, a->fds[1], SIGKILL, NULL, 0) == 0);
	while (kit_alive(pid))
		(void)kit_turn(20);
	kit_end();
}

/* ---- what dies on the way ------------------------------------------------------------------ */

CHILD_TEST(dead_cell)
{
	int peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z);
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, z->handle);
	uint32_t handle = c->handle;

	CHILD_CHECK(kill(c->l.pid, SIGKILL) == 0); /* before the zygote has even looked */
	CHILD_CHECK(code_of(seq) == -ESRCH);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, handle, z->handle)) == -ESRCH);
	CHILD_CHECK(c->hello_fd == -1);
	CHILD_CHECK(code_of(ask(WARDEN_DESTROY, handle, 0)) == 0);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, handle, z->handle)) == -ENOENT);
	kit_end();
}

/* A zygote that ends, or sends an invalid answer, fails its waiting requests, and no others. */
static void dead_zygote(void *arg)
{
	int peer, other_peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer), *other = kit_zygote(1, &other_peer);
	struct cell *lives = kit_cell(0, z), *waits = kit_cell(1, z), *others = kit_cell(2, other);
	uint32_t handle = z->handle;

	(void)make_kernel(lives, peer);
	uint64_t seq = ask(WARDEN_KERNEL, waits->handle, handle);
	uint64_t others_seq = ask(WARDEN_KERNEL, others->handle, other->handle);

	if (arg)
		CHILD_CHECK(send(peer, "nonsense", 8, 0) == 8);
	else
		fd_close(peer);
	CHILD_CHECK(code_of(seq) == -EPIPE && waits->hello_fd == -1);
	CHILD_CHECK(!w.zygotes[0] && !heard(others_seq));
	CHILD_CHECK(usage_of(lives->handle).kernel == KERNEL_RUNS);
	CHILD_CHECK(code_of(ask(WARDEN_KERNEL, waits->handle, handle)) == -ENOENT);
	CHILD_CHECK(code_of(ask(WARDEN_RETIRE, 0, handle)) == -ENOENT);
	kit_end();
}

TEST(dead_zygote)
{
	child_run(dead_zygote, NULL);
	child_run(dead_zygote, "says nonsense");
}

/* A zygote that says nothing for too long is ended: nobody waits for it, and no late answer can
 * come. */
CHILD_TEST(mute_zygote)
{
	int peer, other_peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer), *other = kit_zygote(1, &other_peer);
	struct cell *lives = kit_cell(0, z), *first = kit_cell(1, z), *second = kit_cell(2, z);
	struct cell *others = kit_cell(3, other);

	(void)make_kernel(lives, peer);
	uint64_t first_seq = ask(WARDEN_KERNEL, first->handle, z->handle);

	kit_skip(4900);
	kit_rest();
	uint64_t second_seq = ask(WARDEN_KERNEL, second->handle, z->handle);
	uint64_t others_seq = ask(WARDEN_KERNEL, others->handle, other->handle);

	CHILD_CHECK(!heard(first_seq));
	kit_skip(200);
	CHILD_CHECK(code_of(first_seq) == -ETIMEDOUT && code_of(second_seq) == -EPIPE);
	CHILD_CHECK(!w.zygotes[0] && w.zygotes[1] && !heard(others_seq));
	CHILD_CHECK(first->hello_fd == -1 && second->hello_fd == -1);
	CHILD_CHECK(usage_of(lives->handle).kernel == KERNEL_RUNS);
	kit_rest();
	kit_skip(5000);
	CHILD_CHECK(code_of(others_seq) == -ETIMEDOUT);
	kit_end();
}

CHILD_TEST(retired)
{
	int peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *lives = kit_cell(0, z), *waits = kit_cell(1, z);

	z->l.pid = kit_init(&z->l.pidfd); /* any process */
	pid_t pid = z->l.pid;

	(void)make_kernel(lives, peer);
	uint64_t seq = ask(WARDEN_KERNEL, waits->handle, z->handle);

	CHILD_CHECK(code_of(ask(WARDEN_RETIRE, 0, z->handle)) == 0 && code_of(seq) == -EPIPE);
	CHILD_CHECK(!w.zygotes[0]); /* no request waits for its death, but it is collected */
	while (kit_alive(pid))
		(void)kit_turn(5);
	CHILD_CHECK(usage_of(lives->handle).kernel == KERNEL_RUNS);
	kit_end();
}

/* A kernel that the zygote could not fork, or lied about, can be asked for again. */
CHILD_TEST(refused)
{
	int peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z), *other = kit_cell(1, z);
	struct zygote_reply reply;
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, z->handle);

	pid_t pid = serve(peer, &reply);

	say(peer, (struct zygote_reply){ .seq = c->handle, .code = -ENOMEM });
	CHILD_CHECK(code_of(seq) == -ENOMEM && c->hello_fd == -1);
	const pid_t lies[] = { 0, 1, getpid(), other->l.pid, c->l.pid };

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		seq = ask(WARDEN_KERNEL, c->handle, z->handle);
		say(peer, (struct zygote_reply){ .seq = c->handle, .pid = lies[i] });
		CHILD_CHECK(code_of(seq) == -EPROTO && answer_to(seq)->reply.msg[0]);
		CHILD_CHECK(c->kernel == KERNEL_NONE && c->hello_fd == -1);
	}
	seq = ask(WARDEN_KERNEL, c->handle, z->handle);
	say(peer, (struct zygote_reply){ .seq = c->handle, .pid = pid });
	CHILD_CHECK(code_of(seq) == 0 && usage_of(other->handle).end == CELL_RUNNING);
	kit_end();
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* The client keeps its copy of the kernel's descriptor: the loop must not spin because of this. */
CHILD_TEST(ended)
{
	int peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z);
	const struct kit_answer *a = make_kernel(c, peer);
	struct pollfd p = { .fd = a->fds[1], .events = POLLIN };

	CHILD_CHECK(kill(c->kernel_pid, SIGTERM) == 0 && poll(&p, 1, KIT_WAIT_MS) == 1);
	while (c->kernel == KERNEL_RUNS)
		(void)kit_turn(20);
	kit_rest();
	CHILD_CHECK(WTERMSIG(usage_of(c->handle).kernel_status) == SIGTERM);
	kit_rest();
	CHILD_CHECK(poll(&p, 1, 0) == 1); /* still held, still readable */
	kit_end();
}

/* Its last numbers know of the kernel, which died with it. */
CHILD_TEST(destroyed)
{
	int peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z);
	uint32_t handle = c->handle;

	(void)make_kernel(c, peer);
	uint64_t seq = ask(WARDEN_DESTROY, handle, 0);

	CHILD_CHECK(code_of(ask(WARDEN_USAGE, handle, 0)) == -ENOENT); /* the name is gone at once
									*/
	const struct kit_answer *a = answer_to(seq);

	CHILD_CHECK(a->reply.code == 0 && a->reply.usage.end == CELL_END_CLIENT);
	CHILD_CHECK(a->reply.usage.kernel == KERNEL_ENDED);
	CHILD_CHECK(WTERMSIG(a->reply.usage.kernel_status) == SIGKILL);
	CHILD_CHECK(kit_records() == 1); /* the zygote's */
	kit_end();
}

/*
 * Destroyed while its kernel was on the way. A pid 1 cannot die before everything in its namespace
 * is collected, and a kernel is the warden's to collect, whether it ever was named in time or not.
 */
static void destroyed_early(void *arg)
{
	int peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z), *other = kit_cell(1, z);
	struct zygote_reply reply;
	uint64_t kernel = ask(WARDEN_KERNEL, c->handle, z->handle);

	(void)serve(peer, &reply);
	/* Somebody else is dead too, and not collected yet. */
	CHILD_CHECK(kill(other->l.pid, SIGKILL) == 0);
	uint64_t seq = ask(WARDEN_DESTROY, c->handle, 0);

	if (arg)
		fd_close(peer); /* it dies before it can name it */
	else
		say(peer, reply);
	CHILD_CHECK(code_of(seq) == 0);
	CHILD_CHECK(code_of(kernel) < 0);
	kit_rest();
	kit_end();
}

TEST(destroyed_early)
{
	child_run(destroyed_early, NULL);
	child_run(destroyed_early, "the zygote dies");
}

/* kit_end() wants it to be over soon, with nothing left. */
CHILD_TEST(client_gone)
{
	int peer;
	struct zygote_reply reply;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *has = kit_cell(0, z), *unnamed = kit_cell(1, z);

	(void)make_kernel(has, peer);
	(void)kit_cell(2, NULL);
	(void)ask(WARDEN_KERNEL, unnamed->handle, z->handle);
	(void)serve(peer, &reply);
	kit_end();
}

/* Unread answers: the warden does not wait for ever, and then drops the client. */
CHILD_TEST(client_deaf)
{
	struct warden_req req = { .version = WARDEN_VERSION, .op = WARDEN_USAGE };

	kit_start();
	(void)kit_cell(0, NULL);
	for (unsigned int i = 0; i < 100000 && !w.deaf; i++) {
		req.seq = i + 1;
		CHILD_CHECK(fd_send(client, &req, sizeof(req), NULL, 0) == 0);
		CHILD_CHECK(dispatch_serve(&w) == !w.deaf);
	}
	CHILD_CHECK(w.deaf);
	kit_end();
}
