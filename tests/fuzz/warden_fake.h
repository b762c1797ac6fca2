/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_fake.h - Fakes behind the warden's requests, without processes: cells and zygotes
 * that are descriptors. Included once, by fuzz_warden.c.
 *
 * They replace src/warden/warden_cell.c, src/warden/zygote.c, the evidence, launch_abort() and the
 * clock. Each has an eventfd for everything that the warden would watch; the fuzzer makes things
 * happen by writing to it. How calls end is in the spec, so that the model can know it too.
 * Whatever the real ones may rely on is required here: no call for something gone, nothing
 * collected twice.
 */
#ifndef CAISSON_FUZZ_WARDEN_FAKE_H
#define CAISSON_FUZZ_WARDEN_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/evidence.h"
#include "cell/spec.h"
#include "fuzz.h"
#include "warden/dispatch.h"

#define FAKES_MAX 64
#define FAKE_PID 100000 /* and up: of cells */
#define FAKE_ZYGOTE_PID 200000
#define FAKE_UID 300000u

/* The content of a descriptor that goes to the client, to recognize it. */
#define FAKE_BASE 70000u /* a cell's first host id, less its index */

enum fake_id { FAKE_CHANNEL = 1000, FAKE_STATUS = 2000, FAKE_HELLO = 3000 };

/* Events outside of the warden, by the index in its tables. */
struct fake_cell {
	bool exists, ready, init_dead;
	bool kernel_dead;
	unsigned int not_ours; /* so many times the kernel cannot be collected yet */
};

struct fake_answer {
	uint32_t handle;
	int code;
	pid_t pid;
};

struct fake_zygote {
	bool exists, ready, dead, has_answer;
	struct fake_answer answer;
};

static struct warden w;
static struct fake_cell fake_cells[FAKES_MAX];
static struct fake_zygote fake_zygotes[WARDEN_ZYGOTES_MAX];
static uint64_t fake_now_ns;

static int fake_event(unsigned int value)
{
	int fd = eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK);

	require(fd >= 0);
	return fd;
}

/* It becomes readable, and stays so. */
static void fake_fire(int fd)
{
	const uint64_t one = 1;

	require(write(fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

uint64_t clock_now_ns(void)
{
	return fake_now_ns;
}

/* At its end the warden waits for processes; here it has none, and a second is soon over. */
int usleep(useconds_t us)
{
	(void)us;
	fake_now_ns += CLOCK_NS_PER_S;
	return 0;
}

/* ---- how things end -------------------------------------------------------------------------- */

static int begin_result(const struct cell_spec *spec)
{
	return spec->limits.pids % 5 == 2 ? -EBUSY : 0;
}

static int made_result(const struct cell_spec *spec)
{
	return spec->limits.pids % 7 == 3 ? -EIO : 0;
}

static bool ends_at_once(const struct cell_spec *spec)
{
	return spec->limits.files % 3 == 2;
}

static int remove_result(const struct cell_spec *spec)
{
	return spec->limits.inodes % 4 == 3 ? -EBUSY : 0;
}

static int fork_result(const struct cell_spec *spec)
{
	return spec->limits.inodes % 7 == 6 ? -EAGAIN : 0;
}

static int adopt_result(pid_t pid)
{
	return pid <= 1 || pid % 4 == 1 ? -EPROTO : 0;
}

/* Its child is killed by its number, so it has to be one. */
void launch_abort(struct launched *l)
{
	require(l->pid > 0);
	l->pid = 0;
	l->pidfd = fd_close(l->pidfd);
	l->sync_fd = fd_close(l->sync_fd);
	l->status_fd = fd_close(l->status_fd);
	l->channel_fd = fd_close(l->channel_fd);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static struct fake_cell *fake_of(const struct cell *c)
{
	require(c->index < FAKES_MAX && fake_cells[c->index].exists);
	return &fake_cells[c->index];
}

static void check_descriptors(const int *fds, size_t n_fds, size_t max)
{
	require(n_fds <= max);
	for (size_t i = 0; i < n_fds; i++)
		require(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
}

int cell_begin(struct cell_host *h, const struct cell_spec *spec, uid_t owner, const int *fds,
	       size_t n_fds, struct cell *ret, struct err *e)
{
	int r = begin_result(spec);

	require(h == &w.host && spec_check(spec, NULL) == 0);
	check_descriptors(fds, n_fds, CELL_FDS_MAX);
	require(ret->index < FAKES_MAX && !fake_cells[ret->index].exists);
	/* It belongs to the named zygote, or to none if none was named. */
	require(owner == (ret->zygote ? FAKE_UID + ret->zygote % WARDEN_CELLS_MAX : 0));
	ret->lease_fd = ret->kernel_pidfd = ret->cgroup.oom_fd = -1;
	cell_line_init(ret);
	ret->spec = *spec;
	ret->l = (struct launched){ .pidfd = -1, .channel_fd = -1, .sync_fd = -1, .status_fd = -1 };
	if (r < 0)
		return err_set(e, r, "make a cell");
	ret->plan = malloc(1);
	ret->l.pid = FAKE_PID + (pid_t)ret->index;
	ret->l.pidfd = fake_event(0);
	ret->l.sync_fd = fake_event(0);
	ret->l.channel_fd = fake_event(FAKE_CHANNEL + ret->index);
	ret->has_cgroup = !(spec->without & CELL_WITHOUT_CGROUP);
	if (ret->has_cgroup)
		ret->cgroup.oom_fd = fake_event(0);
	ret->config.uid = 1000;
	ret->agent = FAKE_BASE + ret->index + ret->config.uid;
	ret->created_ns = fake_now_ns;
	ret->check_ns = fake_now_ns + LAUNCH_DEADLINE_NS;
	fake_cells[ret->index] = (struct fake_cell){ .exists = true };
	return 0;
}

void cell_line_init(struct cell *c)
{
	c->hello_fd = -1;
	for (size_t i = 0; i < KERNEL_PIPES; i++)
		c->pipes[i] = -1;
}

void cell_line_close(struct cell *c)
{
	c->hello_fd = fd_close(c->hello_fd);
	for (size_t i = 0; i < KERNEL_PIPES; i++)
		c->pipes[i] = fd_close(c->pipes[i]);
}

/* A client may have a copy: what was watched is not forgotten by closing it. */
int cell_unwatch(int epoll, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	return fd_close(fd);
}

/* All that is held of it. */
static void release(struct cell *c)
{
	free(c->plan);
	c->plan = NULL;
	c->l.sync_fd = cell_unwatch(c->epoll, c->l.sync_fd);
	c->l.pidfd = cell_unwatch(c->epoll, c->l.pidfd);
	c->l.channel_fd = fd_close(c->l.channel_fd);
	c->cgroup.oom_fd = cell_unwatch(c->epoll, c->cgroup.oom_fd);
	c->kernel_pidfd = cell_unwatch(c->epoll, c->kernel_pidfd);
	cell_line_close(c);
	fake_of(c)->exists = false;
}

uint64_t cell_check(struct cell *c, uint64_t now_ns)
{
	uint64_t at = c->created_ns + c->spec.limits.wall_ms * CLOCK_NS_PER_MS;

	require(fake_of(c)->exists && !c->plan && now_ns == fake_now_ns);
	if (c->end == CELL_RUNNING && !c->spec.limits.wall_ms)
		return 0;
	if (c->end == CELL_RUNNING && now_ns < at)
		return at;
	if (c->end == CELL_RUNNING)
		cell_kill(c, CELL_END_WALL);
	return c->l.pid > 0 ? now_ns + STRAY_AGAIN_NS : 0;
}

int cell_made(struct cell *c, struct err *e)
{
	int r = made_result(&c->spec);

	require(c->plan && fake_of(c)->ready);
	free(c->plan);
	c->plan = NULL;
	c->l.sync_fd = fd_close(c->l.sync_fd);
	if (r < 0) {
		release(c);
		return err_set(e, r, "see a cell made");
	}
	c->check_ns = cell_check(c, fake_now_ns);
	return 0;
}

void cell_kill(struct cell *c, enum cell_end why)
{
	require(fake_of(c)->exists && why != CELL_RUNNING);
	if (c->end == CELL_RUNNING)
		c->end = why;
}

void cell_reaped(struct cell *c)
{
	/* Collecting a process that lives would wait for it. */
	require(fake_of(c)->init_dead && !c->plan && c->l.pid > 0);
	c->l.pid = 0;
	if (c->end == CELL_RUNNING)
		c->end = CELL_END_INIT;
}

int cell_kernel_reaped(struct cell *c)
{
	struct fake_cell *f = fake_of(c);

	require(c->kernel == KERNEL_RUNS);
	if (!f->kernel_dead)
		return -EAGAIN;
	if (f->not_ours) {
		f->not_ours--;
		return -ECHILD;
	}
	c->kernel = KERNEL_ENDED;
	c->kernel_status = 9;
	c->kernel_pid = 0;
	c->kernel_pidfd = cell_unwatch(c->epoll, c->kernel_pidfd);
	return 0;
}

void cell_memory_event(struct cell *c)
{
	uint64_t ticks;

	require(c->has_cgroup);
	(void)!read(c->cgroup.oom_fd, &ticks, sizeof(ticks));
	cell_kill(c, CELL_END_MEMORY);
}

void cell_usage(const struct cell *c, struct cell_usage *ret)
{
	require(fake_of(c)->exists && !c->plan);
	*ret = (struct cell_usage){ .end = c->end,
				    .cpu_ns = c->spec.limits.pids,
				    .kernel = c->kernel,
				    .kernel_status = c->kernel_status };
}

int cell_remove(struct cell *c, struct cell_usage *ret, struct err *e)
{
	int r = remove_result(&c->spec);

	require(c->l.pid == 0);
	cell_usage(c, ret);
	release(c);
	return r < 0 ? err_set(e, r, "end a cell") : 0;
}

/* It did not die in time: all that is held is let go. */
void cell_abandon(struct cell *c, struct remains_list *remains)
{
	(void)remains;
	require(c->l.pid > 0 && !fake_of(c)->init_dead);
	release(c);
}

void cell_destroy(struct cell *c, struct remains_list *remains)
{
	(void)remains;
	if (c->plan && c->l.pid > 0)
		launch_abort(&c->l);
	release(c);
}

int evidence_collect(pid_t init, pid_t kernel, const struct cgroup *cgroup, struct err *e)
{
	(void)kernel;
	const struct cell *c = w.cells[init - FAKE_PID];

	(void)e;
	require(c && c->l.pid == init && cgroup == (c->has_cgroup ? &c->cgroup : NULL));
	return fake_event(0);
}

/* ---- zygotes --------------------------------------------------------------------------------- */

static struct fake_zygote *fake_of_zygote(const struct zygote *z)
{
	require(z->index < WARDEN_ZYGOTES_MAX && fake_zygotes[z->index].exists);
	return &fake_zygotes[z->index];
}

int zygote_begin(struct cell_host *h, const struct cell_spec *spec, struct zygote *ret,
		 struct err *e)
{
	int r = begin_result(spec);

	require(h == &w.host && spec_check(spec, NULL) == 0 && spec->n_mounts == 0);
	require(spec->image == CELL_IMAGE_HOST);
	require(ret->index < WARDEN_ZYGOTES_MAX && !fake_zygotes[ret->index].exists);
	ret->l = (struct launched){ .pidfd = -1, .channel_fd = -1, .sync_fd = -1, .status_fd = -1 };
	ret->spec = *spec;
	if (r < 0)
		return err_set(e, r, "make a zygote");
	ret->plan = malloc(1);
	ret->uid = FAKE_UID + ret->index;
	ret->l.pid = FAKE_ZYGOTE_PID + (pid_t)ret->index;
	ret->l.pidfd = fake_event(0);
	ret->l.sync_fd = fake_event(0);
	ret->l.channel_fd = fake_event(0);
	ret->l.status_fd = fake_event(FAKE_STATUS + ret->index);
	fake_zygotes[ret->index] = (struct fake_zygote){ .exists = true };
	return 0;
}

pid_t zygote_end(struct zygote *z, struct remains_list *remains)
{
	(void)remains;
	free(z->plan);
	z->plan = NULL;
	launch_abort(&z->l);
	fake_of_zygote(z)->exists = false;
	return 0;
}

int zygote_made(struct zygote *z, struct err *e)
{
	int r = made_result(&z->spec);

	require(z->plan && fake_of_zygote(z)->ready);
	if (r < 0) {
		(void)zygote_end(z, &w.remains);
		return err_set(e, r, "see a zygote made");
	}
	free(z->plan);
	z->plan = NULL;
	z->l.sync_fd = fd_close(z->l.sync_fd);
	return 0;
}

int zygote_fork(struct zygote *z, struct cell *c, struct err *e)
{
	int r = fork_result(&c->spec);

	/* Into its own cells only, living ones, and one kernel at a time. */
	require(fake_of_zygote(z)->exists && !z->plan && fake_of(c)->exists && !c->plan);
	require(z->handle && c->zygote == z->handle && c->handle && c->l.pid > 0);
	require(c->kernel != KERNEL_RUNS && c->kernel_seq == 0 && c->hello_fd < 0);
	if (r < 0)
		return err_set(e, r, "ask the zygote for a kernel");
	c->hello_fd = fake_event(FAKE_HELLO + c->index);
	for (size_t i = 0; i < KERNEL_PIPES; i++)
		c->pipes[i] = fake_event(0);
	return 0;
}

int zygote_answer(struct zygote *z, uint32_t *ret_handle, int *ret_code, pid_t *ret_pid)
{
	struct fake_zygote *f = fake_of_zygote(z);
	uint64_t ticks;

	require(!z->plan);
	if (f->has_answer) {
		f->has_answer = false;
		*ret_handle = f->answer.handle;
		*ret_code = f->answer.code;
		*ret_pid = f->answer.pid;
		require(read(z->l.channel_fd, &ticks, sizeof(ticks)) == (ssize_t)sizeof(ticks));
		return 1;
	}
	return f->dead ? 0 : -EAGAIN;
}

int zygote_adopt(struct cell *c, pid_t pid, struct err *e)
{
	int r = adopt_result(pid);

	require(fake_of(c)->exists && c->l.pid > 0 && c->kernel != KERNEL_RUNS);
	require(c->kernel_pidfd < 0);
	if (r < 0)
		return err_set(e, r, "believe the zygote");
	c->kernel = KERNEL_RUNS;
	c->kernel_pid = pid;
	c->kernel_status = 0;
	c->kernel_pidfd = fake_event(0);
	fake_of(c)->kernel_dead = false;
	return 0;
}

#endif
