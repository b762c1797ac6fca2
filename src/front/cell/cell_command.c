/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_command.c - What runs in a cell and is no kernel: programs, calls to its files, sockets; and
 * signals.
 *
 * Each is asked from pid 1 under a name of its own and is in the cell's list until pid 1 has said
 * how it ended, or nobody wants to know any more. When the cell is over nothing is asked and
 * nothing is said.
 */
#include <errno.h>
#include <signal.h>

#include "base/err.h"
#include "client/files_client.h"
#include "client/init_client.h"
#include "front/cell/cell.h"

static void enlist(struct cell *r, struct cell_command *c, uint32_t id, enum foreign_kind hands)
{
	c->id = id;
	c->hands = hands;
	c->next = r->commands;
	r->commands = c;
}

int cell_exec(struct cell *r, struct cell_command *c, struct exec_request *q, struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	q->id = cell_name(r);
	int ret = init_exec(r->channel.fd, q, e);

	if (ret == 0)
		enlist(r, c, q->id, q->flags & INIT_TTY ? FOREIGN_TERMINAL : FOREIGN_PIPE);
	return ret;
}

int cell_files(struct cell *r, struct cell_command *c, struct files_request *q, struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	q->id = cell_name(r);
	int ret = files_ask(r->channel.fd, q, e);

	if (ret == 0)
		enlist(r, c, q->id, FOREIGN_PIPE);
	return ret;
}

int cell_connect(struct cell *r, struct cell_command *c, uint32_t port, uint32_t family,
		 struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	uint32_t id = cell_name(r);
	int ret = init_connect(r->channel.fd, id, port, family, e);

	if (ret == 0)
		enlist(r, c, id, FOREIGN_STREAM);
	return ret;
}

int cell_listen(struct cell *r, struct cell_command *c, enum init_listen_kind kind, uint32_t port,
		struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	uint32_t id = cell_name(r);
	int ret = init_listen(r->channel.fd, id, kind, port, e);

	if (ret == 0)
		enlist(r, c, id, kind == INIT_LISTEN_DNS_UDP ? FOREIGN_DATAGRAM : FOREIGN_LISTENER);
	return ret;
}

void cell_forget(struct cell *r, struct cell_command *c)
{
	for (struct cell_command **at = &r->commands; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	c->id = 0;
	c->next = NULL;
}

/* Our own pid 1 sends what was asked for. */
static bool are_of(const int *fds, size_t n, enum foreign_kind kind)
{
	for (size_t i = 0; i < n; i++)
		if (foreign_check(fds[i], kind) < 0)
			return false;
	return true;
}

/* Names are given once in the life of a cell, so an answer can not be for somebody else. */
void cell_command_heard(struct cell *r, const struct init_msg *m, int *fds, size_t n_fds)
{
	struct cell_command *c = r->commands;

	while (c && (!m->id || c->id != m->id))
		c = c->next;
	if (!c)
		return;
	if (!are_of(fds, n_fds, c->hands)) {
		cell_refuse(r, "its pid 1 sent a descriptor of another kind than was asked for");
		return;
	}
	switch (m->type) {
	case INIT_STARTED:
		c->started(c, m->u.pid, fds, n_fds);
		break;
	case INIT_CONNECTED:
		cell_forget(r, c);
		c->started(c, 0, fds, n_fds);
		break;
	case INIT_FAILED:
		cell_forget(r, c);
		c->failed(c, &m->u.failed);
		break;
	case INIT_EXITED:
		cell_forget(r, c);
		c->exited(c, &m->u.exited);
		break;
	default:
		break;
	}
}

/* ---- signals ------------------------------------------------------------------------------- */

void cell_interrupt(struct cell *r, struct kernel *s)
{
	if (r->channel.fd < 0 || r->lost)
		return;
	if (s->command)
		(void)init_signal(r->channel.fd, s->command, INIT_TARGET_GROUP, 0, SIGINT, NULL);
	else if (s->pid > 1)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_PID_GROUP, s->pid, SIGINT, NULL);
}

void cell_signal(struct cell *r, const struct cell_command *c, enum init_target target, int signo)
{
	if (c->id && !r->lost && r->channel.fd >= 0)
		(void)init_signal(r->channel.fd, c->id, target, 0, signo, NULL);
}

void cell_signal_group(struct cell *r, int pid, int signo)
{
	if (!r->lost && r->channel.fd >= 0)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_PID_GROUP, pid, signo, NULL);
}

void cell_signal_all(struct cell *r, int signo)
{
	if (r->channel.fd >= 0 && !r->lost)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_ALL, 0, signo, NULL);
}

void cell_kill_all(struct cell *r)
{
	if (r->channel.fd < 0 || r->lost)
		return;
	cell_signal_all(r, SIGKILL);
	/* Whoever comes next must not be given a kernel that is about to die. */
	for (size_t i = 0; i < LANG_MAX_; i++) {
		if (r->kernels[i].state == KERNEL_IDLE)
			r->kernels[i].state = KERNEL_ENDING;
		r->kernels[i].killed = true;
	}
}
