/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_model.h - The answers that a warden owes, and when. Included once, by fuzz_warden.c.
 *
 * The model has a row for each cell and zygote, and a list of the answers that are due. A request
 * either has its answer at once or leaves its number in a row, until one of the events below makes
 * it due: that is all the protocol promises, as answers come in no particular order.
 */
#ifndef CAISSON_FUZZ_WARDEN_MODEL_H
#define CAISSON_FUZZ_WARDEN_MODEL_H

#include "warden_fake.h"

/* The state of a cell, and of a zygote, in the model, at one index of the warden's tables. */
struct model {
	bool exists, making, dying, dead; /* dead: its pid 1 is */
	bool claimed;
	uint32_t handle, zygote;
	uint64_t create_seq, destroy_seq, kernel_seq; /* 0 = no request waits */
	uint64_t deadline_ns;                         /* while it is made, and while it dies */
	struct cell_spec spec;
};

struct due {
	uint64_t seq;
	uint32_t op, index;
	int code;
};

static struct model cells[FAKES_MAX], zygotes[WARDEN_ZYGOTES_MAX];
static uint32_t dead_cells[FAKES_MAX], dead_zygotes[FAKES_MAX];
static size_t n_dead, n_dead_zygotes;
static struct due due[4 * FAKES_MAX];
static size_t n_due;

/* ---- the model ------------------------------------------------------------------------------- */

static void expect(enum warden_op op, uint64_t seq, int code, uint32_t index)
{
	require(n_due < ARRAY_SIZE(due));
	due[n_due++] = (struct due){ .op = op, .seq = seq, .code = code, .index = index };
}

static bool any_handle(const struct model *m)
{
	return m->exists && !m->making && !m->dying;
}

static struct model *by_handle(struct model *list, size_t n, uint32_t handle)
{
	for (size_t i = 0; i < n; i++)
		if (handle && any_handle(&list[i]) && list[i].handle == handle)
			return &list[i];
	return NULL;
}

/* The @target'th of those that have a handle. */
static struct model *pick(struct model *list, size_t n, unsigned int target)
{
	struct model *found[FAKES_MAX];
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (any_handle(&list[i]))
			found[k++] = &list[i];
	return k ? found[target % k] : NULL;
}

static size_t first_free(const struct model *list, size_t n)
{
	size_t i = 0;

	while (i < n && list[i].exists)
		i++;
	return i;
}

static uint32_t index_of(const struct model *m)
{
	return (uint32_t)(m >= zygotes && m < zygotes + WARDEN_ZYGOTES_MAX ? m - zygotes :
									     m - cells);
}

static void end_model(struct model *m)
{
	bool zygote = m >= zygotes && m < zygotes + WARDEN_ZYGOTES_MAX;

	if (m->handle && zygote)
		dead_zygotes[n_dead_zygotes++] = m->handle;
	else if (m->handle)
		dead_cells[n_dead++] = m->handle;
	*m = (struct model){ .exists = false };
}

/* It exists, and is made later. The same for both tables. */
static int begin_model(struct model *list, size_t n, const struct warden_req *req)
{
	size_t i = first_free(list, n);
	int r = begin_result(&req->spec);

	if (i == n)
		return -EAGAIN;
	if (r < 0 || w.epoll < 0)
		return r < 0 ? r : -EBADF;
	list[i] = (struct model){ .exists = true,
				  .making = true,
				  .zygote = list == cells ? req->zygote : 0,
				  .create_seq = req->seq,
				  .deadline_ns = fake_now_ns + LAUNCH_DEADLINE_NS,
				  .spec = req->spec };
	return 1;
}

/* Whether a cell has a kernel when it is looked at now. */
static bool has_kernel(const struct model *m)
{
	const struct fake_cell *f = &fake_cells[index_of(m)];

	return m->kernel_seq ||
	       (w.cells[index_of(m)]->kernel == KERNEL_RUNS && (!f->kernel_dead || f->not_ours));
}

static int expect_kernel(struct model *m, const struct warden_req *req)
{
	if (!by_handle(zygotes, WARDEN_ZYGOTES_MAX, req->zygote) || m->zygote != req->zygote)
		return -ENOENT;
	if (m->dead)
		return -ESRCH;
	if (has_kernel(m))
		return -EBUSY;
	int r = fork_result(&m->spec);

	if (r < 0)
		return r;
	m->kernel_seq = req->seq;
	return 1;
}

static void refuse_kernels_of(uint32_t zygote)
{
	for (uint32_t i = 0; i < FAKES_MAX; i++)
		if (cells[i].exists && cells[i].zygote == zygote && cells[i].kernel_seq) {
			expect(WARDEN_KERNEL, cells[i].kernel_seq, -EPIPE, i);
			cells[i].kernel_seq = 0;
		}
}

static int expect_destroy(struct model *m, const struct warden_req *req)
{
	int r = remove_result(&m->spec);

	if (m->dead) {
		end_model(m);
		return r;
	}
	m->dying = true;
	m->destroy_seq = req->seq;
	m->deadline_ns = fake_now_ns + CELL_REAP_MS * CLOCK_NS_PER_MS;
	return 1;
}

static void rest_zygote(struct model *z)
{
	if (z->exists && !z->making)
		refuse_kernels_of(z->handle);
	if (z->exists)
		end_model(z);
}

/* Nobody waits for its end: what asked for it is gone, and so is what waited for it to be made. */
static void rest_cell(struct model *m)
{
	bool claimed = m->claimed;

	m->claimed = false;
	if (!m->exists || m->dying || claimed)
		return;
	if (m->kernel_seq)
		expect(WARDEN_KERNEL, m->kernel_seq, -ESRCH, index_of(m));
	m->kernel_seq = 0;
	if (m->making || m->dead) {
		end_model(m);
		return;
	}
	m->dying = true;
	m->destroy_seq = WARDEN_NOBODY;
	m->deadline_ns = fake_now_ns + CELL_REAP_MS * CLOCK_NS_PER_MS;
}

static int expect_rest(void)
{
	for (size_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
		rest_zygote(&zygotes[i]);
	for (size_t i = 0; i < FAKES_MAX; i++)
		rest_cell(&cells[i]);
	return 0;
}

static void expect_end(const struct model *m, int code, uint32_t i)
{
	if (m->destroy_seq != WARDEN_NOBODY)
		expect(WARDEN_DESTROY, m->destroy_seq, code, i);
}

/* The answer that is due to a whole request; 1: it comes later. */
static int expected(const struct warden_req *req, size_t n_fds)
{
	struct model *m = by_handle(cells, FAKES_MAX, req->cell);
	struct model *z = by_handle(zygotes, WARDEN_ZYGOTES_MAX, req->zygote);
	size_t max_fds = req->op == WARDEN_CREATE ? CELL_FDS_MAX : 0;

	if (req->version != WARDEN_VERSION)
		return -EPROTO;
	if (req->op == 0 || req->op >= WARDEN_OP_MAX_)
		return -ENOSYS;
	if (req->seq == 0 || req->seq == WARDEN_NOBODY || n_fds > max_fds)
		return -EINVAL;
	if (req->op == WARDEN_CREATE || req->op == WARDEN_ZYGOTE) {
		bool zygote = req->op == WARDEN_ZYGOTE;

		if (spec_check(&req->spec, NULL) < 0 || (zygote && req->spec.n_mounts > 0))
			return -EINVAL;
		if (zygote && req->spec.image != CELL_IMAGE_HOST)
			return -EPERM;
		if (!zygote && req->zygote && !z)
			return -ENOENT;
		return zygote ? begin_model(zygotes, WARDEN_ZYGOTES_MAX, req) :
				begin_model(cells, FAKES_MAX, req);
	}
	if (req->op == WARDEN_RETIRE) {
		if (!z)
			return -ENOENT;
		refuse_kernels_of(z->handle);
		end_model(z);
		return 0;
	}
	if (req->op == WARDEN_REST)
		return expect_rest();
	if (!m)
		return -ENOENT;
	if (req->op == WARDEN_CLAIM)
		m->claimed = true;
	if (req->op == WARDEN_EVIDENCE)
		return m->dead ? -ESRCH : 0;
	if (req->op == WARDEN_KERNEL)
		return expect_kernel(m, req);
	return req->op == WARDEN_DESTROY ? expect_destroy(m, req) : 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void event_made(uint32_t i)
{
	struct model *m = &cells[i];
	int r = made_result(&m->spec);

	if (!m->exists || !m->making)
		return;
	fake_cells[i].ready = true;
	fake_fire(w.cells[i]->l.sync_fd);
	expect(WARDEN_CREATE, m->create_seq, r, i);
	if (r < 0)
		end_model(m);
}

static void event_init(uint32_t i)
{
	struct model *m = &cells[i];

	if (!m->exists || m->making || m->dead)
		return;
	m->dead = fake_cells[i].init_dead = true;
	fake_fire(w.cells[i]->l.pidfd);
	if (m->kernel_seq)
		expect(WARDEN_KERNEL, m->kernel_seq, -ESRCH, i);
	m->kernel_seq = 0;
	if (m->dying) {
		expect_end(m, remove_result(&m->spec), i);
		end_model(m);
	}
}

static void event_memory(uint32_t i)
{
	if (cells[i].exists && !cells[i].making && w.cells[i]->has_cgroup)
		fake_fire(w.cells[i]->cgroup.oom_fd);
}

static void event_kernel(uint32_t i, unsigned int not_ours)
{
	const struct cell *c = w.cells[i];

	if (!cells[i].exists || cells[i].making || c->kernel != KERNEL_RUNS ||
	    fake_cells[i].kernel_dead)
		return;
	fake_cells[i].kernel_dead = true;
	fake_cells[i].not_ours = not_ours;
	fake_fire(c->kernel_pidfd);
}

static void event_zygote_made(uint32_t i)
{
	struct model *z = &zygotes[i];
	int r = made_result(&z->spec);

	if (!z->exists || !z->making)
		return;
	fake_zygotes[i].ready = true;
	fake_fire(w.zygotes[i]->l.sync_fd);
	expect(WARDEN_ZYGOTE, z->create_seq, r, i);
	if (r < 0)
		end_model(z);
}

/* It may report anything about any cell; only reports about its own waiting cells count. */
static void event_zygote_answer(uint32_t i, uint32_t cell, uint8_t pid, uint8_t lie)
{
	const struct model *z = &zygotes[i];
	struct fake_answer a = { .handle = cells[cell].handle,
				 .pid = pid,
				 .code = lie & 1 ? -(1 + pid) : 0 };

	if (!z->exists || z->making)
		return;
	if (lie & 2)
		a.handle ^= 1u << (pid % 32);
	if (lie & 4)
		a.pid = -a.pid;
	struct model *m = by_handle(cells, FAKES_MAX, a.handle);

	if (m && m->zygote == z->handle && m->kernel_seq) {
		int r = a.code < 0 ? a.code : adopt_result(a.pid);

		expect(WARDEN_KERNEL, m->kernel_seq, r, index_of(m));
		m->kernel_seq = 0;
	}
	fake_zygotes[i].has_answer = true;
	fake_zygotes[i].answer = a;
	fake_fire(w.zygotes[i]->l.channel_fd);
}

static void event_zygote_dies(uint32_t i)
{
	struct model *z = &zygotes[i];

	if (!z->exists || z->making)
		return;
	fake_zygotes[i].dead = true;
	fake_fire(w.zygotes[i]->l.channel_fd);
	refuse_kernels_of(z->handle);
	end_model(z);
}

static void overdue(struct model *m, uint32_t i)
{
	if (!m->exists || !(m->making || m->dying) || fake_now_ns < m->deadline_ns)
		return;
	if (m->making)
		expect(m >= zygotes && m < zygotes + WARDEN_ZYGOTES_MAX ? WARDEN_ZYGOTE :
									  WARDEN_CREATE,
		       m->create_seq, -ETIMEDOUT, i);
	if (m->kernel_seq)
		expect(WARDEN_KERNEL, m->kernel_seq, -ESRCH, i);
	if (m->dying)
		expect_end(m, -EBUSY, i);
	end_model(m);
}

static void event_time(uint64_t ms)
{
	fake_now_ns += ms * CLOCK_NS_PER_MS;
	for (uint32_t i = 0; i < FAKES_MAX; i++)
		overdue(&cells[i], i);
	for (uint32_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
		overdue(&zygotes[i], i);
}

/* Late news of something that is gone, whatever may be in its place by now. */
static void event_stale(uint8_t what, uint32_t i, uint32_t age)
{
	const struct cell *c = w.cells[i];
	const struct zygote *z = w.zygotes[i % WARDEN_ZYGOTES_MAX];
	uint32_t serial = age > w.serial ? 0 : w.serial - age;

	if ((!c || c->serial != serial) && (!z || z->serial != serial))
		dispatch_event(&w, source_ref((enum source)(what % (SOURCE_MAX_ + 1)), i, serial));
}

/* The first moment at which something has to be done whatever else happens; 0 = none. */
static uint64_t next_deadline(void)
{
	uint64_t next = 0;

	for (size_t i = 0; i < FAKES_MAX + WARDEN_ZYGOTES_MAX; i++) {
		const struct model *m = i < FAKES_MAX ? &cells[i] : &zygotes[i - FAKES_MAX];

		if (m->exists && (m->making || m->dying) && (!next || m->deadline_ns < next))
			next = m->deadline_ns;
	}
	return next;
}

static void check_sleep(int ms)
{
	uint64_t next = next_deadline();

	require(ms >= -1);
	if (next)
		require(ms >= 0 &&
			fake_now_ns + (uint64_t)ms * CLOCK_NS_PER_MS <= next + CLOCK_NS_PER_MS);
}

/* ---- answers --------------------------------------------------------------------------------- */

/*
 * Whose answer it is. A client may give two requests the same number, so for what is new that is in
 * the first descriptor: the channel of a cell, the status of a zygote, the hello of a kernel.
 */
static struct due take_due(const struct warden_reply *reply, const int *fds, size_t n_fds)
{
	const uint64_t first = reply->op == WARDEN_CREATE ? FAKE_CHANNEL :
			       reply->op == WARDEN_ZYGOTE ? FAKE_STATUS :
			       reply->op == WARDEN_KERNEL ? FAKE_HELLO :
							    0;
	bool told = n_fds > 0 && first;
	uint64_t value = 0;

	if (told)
		require(read(fds[0], &value, sizeof(value)) == (ssize_t)sizeof(value));
	for (size_t i = 0; i < n_due; i++)
		if (due[i].op == reply->op && due[i].seq == reply->seq &&
		    due[i].code == reply->code && (!told || first + due[i].index == value)) {
			struct due d = due[i];

			due[i] = due[--n_due];
			return d;
		}
	abort(); /* an answer without a request, or a wrong one */
}

static bool is_new(uint32_t handle)
{
	for (size_t i = 0; i < n_dead; i++)
		if (dead_cells[i] == handle)
			return false;
	for (size_t i = 0; i < n_dead_zygotes; i++)
		if (dead_zygotes[i] == handle)
			return false;
	return handle && !by_handle(cells, FAKES_MAX, handle) &&
	       !by_handle(zygotes, WARDEN_ZYGOTES_MAX, handle);
}

/* A cell, or a zygote, has its name from here on. */
static void check_made(const struct due *d, const struct warden_reply *reply)
{
	bool zygote = d->op == WARDEN_ZYGOTE;
	struct model *m = zygote ? &zygotes[d->index] : &cells[d->index];

	require(is_new(zygote ? reply->zygote : reply->cell));
	require(reply->host_base == (zygote ? 0 : FAKE_BASE + d->index));
	m->handle = zygote ? reply->zygote : reply->cell;
	m->making = false;
}

static size_t fds_due(const struct due *d)
{
	if (d->code < 0)
		return 0;
	return d->op == WARDEN_KERNEL ? 2 + KERNEL_PIPES :
	       d->op == WARDEN_CREATE || d->op == WARDEN_ZYGOTE || d->op == WARDEN_EVIDENCE ? 1 :
											      0;
}

static void check_reply(const struct warden_reply *reply, const int *fds, size_t n_fds)
{
	struct due d = take_due(reply, fds, n_fds);

	require(reply->version == WARDEN_VERSION);
	require(memchr(reply->msg, '\0', sizeof(reply->msg)) != NULL);
	require((reply->msg[0] != '\0') == (d.code < 0));
	require(n_fds == fds_due(&d));
	for (size_t k = 0; k < n_fds; k++)
		require(fcntl(fds[k], F_GETFD) == FD_CLOEXEC);
	if ((d.op == WARDEN_CREATE || d.op == WARDEN_ZYGOTE) && d.code == 0)
		check_made(&d, reply);
	if (d.op == WARDEN_KERNEL && d.code == 0)
		require(reply->cell == cells[d.index].handle);
	if (d.op == WARDEN_USAGE && d.code == 0)
		require(reply->usage.cpu_ns == cells[d.index].spec.limits.pids);
}

#endif
