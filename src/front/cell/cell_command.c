/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_command.c - The commands of a cell: programs, file calls and sockets, that is, everything in
 * it but kernels. And signals.
 *
 * Each command has an id of its own at pid 1. It is in the list of the cell until pid 1 has
 * reported its end or the caller has forgotten it. After the end of the cell no command is sent,
 * and no function of a command is called.
 */
#include <errno.h>
#include <signal.h>

#include "base/err.h"
#include "cell/spec.h"
#include "client/files_client.h"
#include "client/init_client.h"
#include "front/cell/cell.h"

/* The id of the next command, or 0 with @e if the cell is over. */
static uint32_t next_name(struct cell *r, struct err *e)
{
	if (!r->lost && !r->ending && r->sealed)
		return cell_name(r);
	(void)err_set(e, -EPIPE, "the cell is over");
	return 0;
}

/* Add a command to the list, if the request to pid 1 was sent (@ret: its result). */
static int enlist(struct cell *r, struct cell_command *c, uint32_t id, enum foreign_kind hands,
		  int ret)
{
	if (ret < 0)
		return ret;
	c->id = id;
	c->hands = hands;
	c->next = r->commands;
	r->commands = c;
	return 0;
}

int cell_exec(struct cell *r, struct cell_command *c, struct exec_request *q, struct err *e)
{
	q->id = next_name(r, e);
	return enlist(r, c, q->id, q->flags & INIT_TTY ? FOREIGN_TERMINAL : FOREIGN_PIPE,
		      q->id ? init_exec(r->channel.fd, q, e) : -EPIPE);
}

int cell_files(struct cell *r, struct cell_command *c, struct files_request *q, struct err *e)
{
	q->id = next_name(r, e);
	return enlist(r, c, q->id, FOREIGN_PIPE, q->id ? files_ask(r->channel.fd, q, e) : -EPIPE);
}

static void ignore_exit(struct cell_command *c, const struct init_exited *x)
{
	(void)c, (void)x;
}

int cell_pack(struct cell *r, struct cell_command *c, const char *path, uint32_t flags,
	      struct err *e)
{
	struct files_request q = { .op = FILES_TAR_OUT,
				   .flags = flags,
				   .depth = FILES_DEPTH_MAX,
				   .path = path,
				   .uid = CELL_UID,
				   .gid = CELL_GID };

	c->exited = ignore_exit;
	return cell_files(r, c, &q, e);
}

int cell_connect(struct cell *r, struct cell_command *c, uint32_t port, uint32_t family,
		 struct err *e)
{
	uint32_t id = next_name(r, e);

	return enlist(r, c, id, FOREIGN_STREAM,
		      id ? init_connect(r->channel.fd, id, port, family, e) : -EPIPE);
}

int cell_listen(struct cell *r, struct cell_command *c, enum init_listen_kind kind, uint32_t port,
		struct err *e)
{
	uint32_t id = next_name(r, e);

	return enlist(r, c, id, kind == INIT_LISTEN_DNS_UDP ? FOREIGN_DATAGRAM : FOREIGN_LISTENER,
		      id ? init_listen(r->channel.fd, id, kind, port, e) : -EPIPE);
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

/* Whether all descriptors are of the kind that was requested, as those of an honest pid 1 are. */
static bool are_of(const int *fds, size_t n, enum foreign_kind kind)
{
	for (size_t i = 0; i < n; i++)
		if (foreign_check(fds[i], kind) < 0)
			return false;
	return true;
}

/* An id is used once in the life of a cell, so a message cannot be for another command. */
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

static void send_signal(struct cell *r, uint32_t id, enum init_target target, int pid, int signo)
{
	if (r->channel.fd >= 0 && !r->lost)
		(void)init_signal(r->channel.fd, id, target, pid, signo, NULL);
}

void cell_interrupt(struct cell *r, struct kernel *s)
{
	if (s->command)
		send_signal(r, s->command, INIT_TARGET_GROUP, 0, SIGINT);
	else if (s->pid > 1)
		cell_signal_group(r, s->pid, SIGINT);
}

void cell_signal(struct cell *r, const struct cell_command *c, enum init_target target, int signo)
{
	if (c->id)
		send_signal(r, c->id, target, 0, signo);
}

void cell_signal_group(struct cell *r, int pid, int signo)
{
	send_signal(r, 0, INIT_TARGET_PID_GROUP, pid, signo);
}

void cell_signal_all(struct cell *r, int signo)
{
	send_signal(r, 0, INIT_TARGET_ALL, 0, signo);
}

void cell_kill_all(struct cell *r)
{
	if (r->channel.fd < 0 || r->lost)
		return;
	cell_signal_all(r, SIGKILL);
	/* The next execution must not get a kernel that is about to die. */
	for (size_t i = 0; i < LANG_MAX_; i++) {
		if (r->kernels[i].state == KERNEL_IDLE)
			r->kernels[i].state = KERNEL_ENDING;
		r->kernels[i].killed = true;
	}
}
