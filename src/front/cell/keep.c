/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.c - Gives descriptors to the keeper, and takes over those of a former front.
 *
 * Sending blocks, but only for a moment, because the keeper does nothing but wait for messages. A
 * front whose keeper is gone ends (main/front.c): the socket is shut down, and the loop reports
 * that. If a message cannot be sent for another reason, or the keeper does not read for SEND_S
 * seconds, leave_to_next() ends this front.
 */
#include "front/cell/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/cell/cell.h"
#include "front/cell/language.h"
#include "front/support/log.h"

#define SEND_S 10
#define PID_MAX (1 << 22)
#define ID_LEN 32u

_Static_assert(LANG_MAX_ <= KEEPER_KERNELS, "each language has a kernel in the table");
_Static_assert(1 + GAUGE_MAX_ <= KEEPER_FDS_MAX, "a cell fits under one key");

/* ---- taking over --------------------------------------------------------------------------- */

static int map_table(struct keep *k, int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(struct keeper_table))
		return err_say(e, -EPROTO, "the keeper's table has another size");
	void *at =
		mmap(NULL, sizeof(struct keeper_table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return err_set(e, -errno, "map the keeper's table");
	k->table = at;
	return 0;
}

static int take_box(struct keep *k, uint32_t key, const int *fds, size_t n, struct err *e)
{
	if (!k->boxes)
		k->boxes = calloc(KEEPER_KEYS, sizeof(*k->boxes));
	if (!k->boxes)
		return err_set(e, -ENOMEM, "take over what the keeper holds");
	k->boxes[key].n = (unsigned int)n;
	memcpy(k->boxes[key].fds, fds, n * sizeof(*fds));
	return 0;
}

/*
 * Receive one message of the handover. Return: 1 after the last, 0 if more follow, or -errno with
 * @e.
 */
static int hear(struct keep *k, struct err *e)
{
	struct keeper_msg m;
	int fds[KEEPER_FDS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = fd_recv(k->watch.fd, &m, sizeof(m), fds, &n_fds);
	int r;

	if (n == 0 || n == -ECONNRESET) /* the keeper was killed: no daemon is wanted */
		_exit(0);
	if (n != (ssize_t)sizeof(m) || m.version != KEEPER_VERSION || m.key >= KEEPER_KEYS) {
		for (size_t i = 0; n > 0 && i < n_fds; i++)
			fd_close(fds[i]);
		return err_say(e, n < 0 ? (int)n : -EPROTO,
			       "the keeper has another version; reinstall caisson");
	}
	if (m.op == KEEPER_PUT && (r = take_box(k, m.key, fds, n_fds, e)) == 0)
		return 0;
	if (m.op == KEEPER_TABLE && n_fds == 1) {
		k->life = m.key;
		k->signo = (int)m.signo;
		r = map_table(k, fds[0], e);
	} else {
		r = m.op == KEEPER_ALL && k->table ?
			    1 :
			    err_say(e, -EPROTO, "the keeper: invalid message");
	}
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	return r;
}

int keep_open(struct keep *k, struct err *e)
{
	const struct timeval patience = { .tv_sec = SEND_S };
	int r = 0;

	*k = (struct keep){ .watch = { .fd = -1 }, .life = 1 };
	if (!getenv(KEEPER_ENV))
		return 0;
	(void)unsetenv(KEEPER_ENV);
	if (fcntl(KEEPER_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    setsockopt(KEEPER_FD, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return err_set(e, -errno, KEEPER_ENV ": there is no keeper; unset it");
	k->watch.fd = KEEPER_FD;
	k->pid = getppid();
	fd_many(); /* before the descriptors arrive */
	while (r == 0)
		r = hear(k, e);
	return r < 0 ? r : 0;
}

size_t keep_take(struct keep *k, uint32_t key, int *fds, size_t max)
{
	struct keep_box *b = k->boxes ? &k->boxes[key] : NULL;
	size_t n = b && b->n <= max ? b->n : 0;

	if (n > 0) {
		memcpy(fds, b->fds, n * sizeof(*fds));
		b->n = 0;
	}
	return n;
}

int keep_take_one(struct keep *k, uint32_t key)
{
	int fd = -1;

	return keep_take(k, key, &fd, 1) == 1 ? fd : -1;
}

void keep_done(struct keep *k)
{
	for (uint32_t key = 0; k->boxes && key < KEEPER_KEYS; key++) {
		struct keep_box *b = &k->boxes[key];

		if (b->n > 0)
			keep_drop(k, key);
		while (b->n > 0)
			fd_close(b->fds[--b->n]);
	}
	free(k->boxes);
	k->boxes = NULL;
}

/* ---- sending ------------------------------------------------------------------------------- */

/*
 * End this front, because messages to a living keeper fail: for lack of memory, for instance. An
 * orderly end would wait for a warden whose descriptors the keeper holds; going on would leave too
 * little for the next front. So this front exits at once, and the next one begins now.
 */
static _Noreturn void leave_to_next(const char *what, int error)
{
	log_event(LOG_LEVEL_ERROR, "keeper_mute", F_STR("what", what),
		  F_STR("why", strerror(error)));
	_exit(KEEPER_AGAIN);
}

static void say(struct keep *k, enum keeper_op op, uint32_t key, const int *fds, size_t n)
{
	const struct keeper_msg m = { .version = KEEPER_VERSION, .op = op, .key = key };

	if (k->watch.fd < 0)
		return;
	int r = fd_send(k->watch.fd, &m, sizeof(m), fds, n);

	if (r == 0 || r == -ETOOMANYREFS) /* too many descriptors in flight: not kept */
		return;
	if (r != -EPIPE && r != -ECONNRESET)
		leave_to_next("sending", -r);
	(void)shutdown(k->watch.fd, SHUT_RDWR);
}

void keep_put(struct keep *k, uint32_t key, const int *fds, size_t n)
{
	say(k, KEEPER_PUT, key, fds, n);
}

void keep_drop(struct keep *k, uint32_t key)
{
	say(k, KEEPER_DROP, key, NULL, 0);
}

void keep_say(struct keep *k, enum keeper_word word)
{
	say(k, KEEPER_SAY, word, NULL, 0);
}

void keep_settled(struct keep *k)
{
	say(k, KEEPER_SETTLED, 0, NULL, 0);
}

int keep_hear(struct keep *k, int *ret_fd, int *ret_errno)
{
	struct keeper_msg m = { 0 };
	int fds[KEEPER_FDS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = fd_recv(k->watch.fd, &m, sizeof(m), fds, &n_fds);
	bool good = n == (ssize_t)sizeof(m) && m.version == KEEPER_VERSION && m.op == KEEPER_FILE &&
		    m.key < KEEPER_FILE_MAX_ && n_fds <= 1;

	if (n < 0 && n != -ECONNRESET)
		leave_to_next("receiving", (int)-n);
	for (size_t i = 0; !good && n > 0 && i < n_fds; i++)
		fd_close(fds[i]);
	*ret_fd = good && n_fds == 1 ? fds[0] : -1;
	*ret_errno = (int)m.signo;
	return good ? (int)m.key : -EPIPE;
}

/* ---- slots --------------------------------------------------------------------------------- */

uint32_t keep_key(int i, unsigned int part)
{
	return KEEPER_FIRST + (uint32_t)i * KEEPER_PARTS + part;
}

struct keeper_slot *keep_slot(struct keep *k, int i)
{
	return k->table && i >= 0 ? &k->table->slots[i] : NULL;
}

int keep_slot_new(struct keep *k, const char *id)
{
	for (uint32_t n = 0; k->table && n < KEEPER_SLOTS; n++) {
		uint32_t i = (k->next + n) % KEEPER_SLOTS;
		struct keeper_slot *s = &k->table->slots[i];

		if (s->used)
			continue;
		memset(s, 0, sizeof(*s));
		memcpy(s->id, id, strnlen(id, ID_LEN));
		__atomic_store_n(&s->used, 1, __ATOMIC_RELEASE);
		k->next = i + 1;
		return (int)i;
	}
	return -1;
}

void keep_slot_free(struct keep *k, int i)
{
	struct keeper_slot *s = keep_slot(k, i);

	if (s)
		__atomic_store_n(&s->used, 0, __ATOMIC_RELEASE);
}

static bool is_id(const char *id)
{
	size_t n = strspn(id, "0123456789abcdef");

	return n == ID_LEN && id[n] == '\0';
}

static const char *check_kernel(const struct keeper_kernel *c, size_t language, uint32_t names)
{
	if (c->state != KEPT_EMPTY &&
	    (language >= LANG_MAX_ || (c->command == 0 && language != LANG_PYTHON)))
		return "a kernel's language";
	if (c->state >= KEPT_STATE_MAX_)
		return "a kernel's state";
	if (c->pid < 0 || c->pid == 1 || c->pid > PID_MAX)
		return "a kernel's pid";
	if (c->command > names)
		return "a kernel's name";
	return NULL;
}

const char *keep_check(const struct keeper_slot *s)
{
	const char *wrong = NULL;

	if (s->used != 1)
		return "its mark";
	if (memchr(s->id, '\0', sizeof(s->id)) == NULL || !is_id(s->id))
		return "its id";
	if (s->executions > INT64_MAX || s->expires_ms > INT64_MAX / 1000000)
		return "its numbers";
	if (s->names >= CELL_SETTLE / 2) /* more ids will follow */
		return "its names";
	if (s->gauges >> GAUGE_MAX_)
		return "its gauges";
	for (size_t i = 0; i < KEEPER_KERNELS && !wrong; i++) {
		const struct keeper_kernel *c = &s->kernels[i];

		wrong = check_kernel(c, i, s->names);
		/* Two kernels with one id would get reports about each other's end. */
		for (size_t j = 0; j < i && !wrong; j++)
			if (c->state && s->kernels[j].state && c->command &&
			    c->command == s->kernels[j].command)
				wrong = "a kernel's name";
		if (c->state && !s->cell)
			wrong = "a kernel without a cell";
	}
	return wrong;
}
