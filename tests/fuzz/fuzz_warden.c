/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_warden.c - The warden's protocol: any bytes as requests, over a real socket, and anything
 * that may happen between them.
 *
 * The input is a list of steps. Some are messages, made of a valid beginning that the input chose
 * and bytes of its own laid over it; the others are events of the world outside: a cell is made or
 * dies, a zygote answers, time passes. warden_fake.h replaces cells and zygotes.
 * A model of a few lines says which answers are due after each step; many requests may be under way
 * at once.
 *
 * Checked: no request gets further than the permit table and spec_check() allow; every request is
 * answered once, by a whole message that repeats it and carries the right descriptors; a handle
 * that was destroyed never names anything again; the loop comes to rest, and wakes up for every
 * deadline; no descriptor is left.
 */
#include "fuzz.h"
#include "warden_model.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define STEPS_MAX 48
#define FDS_LOOKED_AT 384
#define ROUNDS_MAX 64 /* of the loop, until it has to rest */
#define EVENT 0x80    /* in a step's op: not a request */

enum input_flag {
	INPUT_EPOLL_BROKEN = 1u << 0,
	INPUT_SLOW = 1u << 1, /* objects are made, and die, by a step; otherwise at once */
};

struct step {
	uint8_t op;    /* the request's, unless the overlay writes another; or EVENT + enum event */
	uint8_t shape; /* enum shape */
	uint8_t n_fds; /* modulo FD_PASS_MAX + 1 */
	uint8_t target; /* which of the living or the dead, cells and zygotes */
	uint8_t off[2]; /* where the overlay goes */
	uint8_t len;    /* of the overlay, which follows */
};

enum shape {
	SHAPE_SPEC = 1u << 0,       /* a good spec; otherwise zeros */
	SHAPE_LIVE = 1u << 1,       /* the handle of a living cell */
	SHAPE_DEAD = 1u << 2,       /* of one that was destroyed */
	SHAPE_SHORT = 1u << 3,      /* cut at the overlay */
	SHAPE_LONG = 1u << 4,       /* one byte too many */
	SHAPE_ZYGOTE = 1u << 5,     /* the handle of a living zygote */
	SHAPE_OLD_ZYGOTE = 1u << 6, /* of one that is gone */
	SHAPE_OWN_ZYGOTE = 1u << 7, /* of the cell's */
};

/* Of the cell, or zygote, at index `target`; off and len are parameters. */
enum event {
	EVENT_MADE,
	EVENT_INIT,
	EVENT_MEMORY,
	EVENT_KERNEL, /* off[0]: how often it cannot be collected yet */
	EVENT_ZYGOTE_MADE,
	EVENT_ZYGOTE_ANSWER, /* off[0]: for the cell at this index; off[1]: pid, shape: lies */
	EVENT_ZYGOTE_DIES,
	EVENT_TIME,  /* off: ms, or up to 25.5 s with shape */
	EVENT_STALE, /* off[0]: the source, off[1]: how old */
	EVENTS_,
};

static int kept[4 * FAKES_MAX]; /* a client holds on to what it got */
static size_t n_kept;
static int client;
static bool slow;
static uint64_t steps;

/* ---- the loop -------------------------------------------------------------------------------- */

/* Everything that is due has come, and nothing else. */
static void hear(void)
{
	static struct warden_reply reply;

	for (;;) {
		size_t n_fds = WARDEN_REPLY_FDS_MAX;
		int fds[WARDEN_REPLY_FDS_MAX];
		ssize_t n = fd_recv(client, &reply, sizeof(reply), fds, &n_fds);

		if (n == -EAGAIN)
			break;
		require(n == (ssize_t)sizeof(reply));
		for (size_t i = 0; i < n_fds; i++)
			kept[n_kept++] = fds[i];
		check_reply(&reply, fds, n_fds);
	}
	require(n_due == 0);
}

/* As in warden.c, until nothing happens any more. */
static void run_loop(void)
{
	struct epoll_event ev[64];
	int n = 1, rounds = 0;

	while (n > 0) {
		int ms = dispatch_check(&w);

		require(rounds++ < ROUNDS_MAX); /* or it would spin for ever */
		n = w.epoll < 0 ? 0 : epoll_wait(w.epoll, ev, ARRAY_SIZE(ev), 0);
		for (int i = 0; i < n; i++)
			dispatch_event(&w, ev[i].data.u64);
		if (n == 0)
			hear();
		if (n == 0)
			check_sleep(ms);
	}
}

static void run_event(const struct step *s)
{
	uint32_t i = s->target % FAKES_MAX, z = s->target % WARDEN_ZYGOTES_MAX;

	switch ((s->op & ~EVENT) % EVENTS_) {
	case EVENT_MADE:
		event_made(i);
		break;
	case EVENT_INIT:
		event_init(i);
		break;
	case EVENT_MEMORY:
		event_memory(i);
		break;
	case EVENT_KERNEL:
		event_kernel(i, s->off[0]);
		break;
	case EVENT_ZYGOTE_MADE:
		event_zygote_made(z);
		break;
	case EVENT_ZYGOTE_ANSWER:
		event_zygote_answer(z, s->off[0] % FAKES_MAX, s->off[1], s->shape);
		break;
	case EVENT_ZYGOTE_DIES:
		event_zygote_dies(z);
		break;
	case EVENT_TIME:
		event_time((uint64_t)s->off[0] * (s->shape & 1 ? 100 : 1));
		break;
	default:
		event_stale(s->off[0], i, s->off[1]);
	}
}

/* The fast ways: made at the request for it, dead at the request to end it. */
static void run_prompt(void)
{
	for (uint32_t i = 0; i < FAKES_MAX; i++) {
		event_made(i);
		if (cells[i].exists && cells[i].dying)
			event_init(i);
	}
	for (uint32_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
		event_zygote_made(i);
	run_loop();
	for (uint32_t i = 0; i < FAKES_MAX; i++)
		if (ends_at_once(&cells[i].spec))
			event_init(i);
	run_loop();
}

/* ---- one input ------------------------------------------------------------------------------- */

static void make_request(const struct step *s, const uint8_t *overlay, struct warden_req *req)
{
	size_t off = (size_t)(s->off[0] | s->off[1] << 8) % sizeof(*req);
	size_t room = sizeof(*req) - off;
	const struct model *m = pick(cells, FAKES_MAX, s->target);
	const struct model *z = pick(zygotes, WARDEN_ZYGOTES_MAX, s->target);

	memset(req, 0, sizeof(*req));
	req->version = WARDEN_VERSION;
	req->op = s->op;
	req->seq = ++steps;
	if (s->shape & SHAPE_SPEC)
		spec_default(&req->spec);
	if (s->shape & SHAPE_LIVE && m)
		req->cell = m->handle;
	if (s->shape & SHAPE_DEAD && n_dead)
		req->cell = dead_cells[s->target % n_dead];
	if (s->shape & SHAPE_ZYGOTE && z)
		req->zygote = z->handle;
	if (s->shape & SHAPE_OLD_ZYGOTE && n_dead_zygotes)
		req->zygote = dead_zygotes[s->target % n_dead_zygotes];
	if (s->shape & SHAPE_OWN_ZYGOTE && m)
		req->zygote = m->zygote;
	if (s->len)
		memcpy((char *)req + off, overlay, s->len < room ? s->len : room);
}

/* Send it and let it be served. False: the conversation is over. */
static bool run_request(const struct step *s, const uint8_t *overlay)
{
	static union {
		struct warden_req req;
		char bytes[sizeof(struct warden_req) + 1];
	} m;
	size_t n_fds = s->n_fds % (FD_PASS_MAX + 1), len = sizeof(m.req);
	int fds[FD_PASS_MAX];

	make_request(s, overlay, &m.req);
	if (s->shape & SHAPE_SHORT)
		len = 1 + (size_t)(s->off[0] | s->off[1] << 8) % (sizeof(m.req) - 1);
	else if (s->shape & SHAPE_LONG)
		len++;
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = client;
	require(fd_send(client, &m, len, fds, n_fds) == 0);
	if (len == sizeof(m.req)) {
		const struct model *c = by_handle(cells, FAKES_MAX, m.req.cell);
		uint32_t index = c ? index_of(c) : 0;
		int code = expected(&m.req, n_fds);

		if (code <= 0)
			expect((enum warden_op)m.req.op, m.req.seq, code, index);
	}
	bool served = dispatch_serve(&w);

	require(served == (len == sizeof(m.req)));
	return served;
}

static void run_steps(const uint8_t *data, size_t size)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		struct step s;

		if (size < sizeof(s))
			return;
		memcpy(&s, data, sizeof(s));
		data += sizeof(s);
		size -= sizeof(s);
		s.len = s.len < size ? s.len : (uint8_t)size;
		if (s.op & EVENT)
			run_event(&s);
		else if (!run_request(&s, data))
			return;
		run_loop();
		if (!slow)
			run_prompt();
		data += s.len;
		size -= s.len;
	}
}

static int lowest_free(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	require(fd >= 0);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2], lowest = lowest_free();
	size_t before = open_above(lowest);

	if (size == 0)
		return 0;
	memset(&w, 0, sizeof(w));
	memset(cells, 0, sizeof(cells));
	memset(zygotes, 0, sizeof(zygotes));
	n_dead = n_dead_zygotes = n_due = n_kept = 0;
	steps = 0;
	fake_now_ns = CLOCK_NS_PER_S;
	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	client = pair[0];
	w.sock = pair[1];
	w.epoll = data[0] & INPUT_EPOLL_BROKEN ? -1 : epoll_create1(EPOLL_CLOEXEC);
	slow = data[0] & INPUT_SLOW;
	run_steps(data + 1, size - 1);
	dispatch_end(&w);
	for (size_t i = 0; i < FAKES_MAX; i++)
		require(!fake_cells[i].exists);
	for (size_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
		require(!fake_zygotes[i].exists);
	for (size_t i = 0; i < n_kept; i++)
		fd_close(kept[i]);
	fd_close(w.epoll);
	fd_close(pair[0]);
	fd_close(pair[1]);
	require(lowest_free() == lowest && open_above(lowest) == before); /* none leaked */
	return 0;
}
