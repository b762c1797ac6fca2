/* SPDX-License-Identifier: Apache-2.0 */
/* init_client.c - Requests to pid 1 of a cell, and messages for its failures. */
#include "client/init_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"

static size_t strings_len(const char *const *v, uint32_t *ret_count)
{
	size_t len = 0;

	*ret_count = 0;
	for (; *v; v++) {
		len += strlen(*v) + 1;
		++*ret_count;
	}
	return len;
}

static char *put_string(char *at, const char *s)
{
	size_t n = strlen(s) + 1;

	memcpy(at, s, n);
	return at + n;
}

/* Pack cwd, script path, argv and env into a sealed memfd. */
static int make_blob(const struct exec_request *x, struct init_exec *m, struct err *e)
{
	const char *script = x->script_fd >= 0 ? x->script_path : "";
	size_t len = strlen(x->cwd) + 1 + strlen(script) + 1 + strings_len(x->argv, &m->argc) +
		     strings_len(x->envp, &m->envc);

	if (len > INIT_BLOB_MAX || m->argc > INIT_ARGS_MAX || m->envc > INIT_ARGS_MAX)
		return err_say(
			e, -E2BIG,
			"arguments and environment are %zu bytes in %u pieces; at most %u and %u",
			len, m->argc + m->envc, INIT_BLOB_MAX, INIT_ARGS_MAX);
	_mem_ char *blob = malloc(len);

	if (!blob)
		return err_set(e, -ENOMEM, "pack the request");
	char *at = put_string(put_string(blob, x->cwd), script);

	for (const char *const *v = x->argv; *v; v++)
		at = put_string(at, *v);
	for (const char *const *v = x->envp; *v; v++)
		at = put_string(at, *v);
	m->blob_len = (uint32_t)len;
	int fd = fd_memfd("caisson-exec", blob, len);

	return fd < 0 ? err_set(e, fd, "pack the request") : fd;
}

/* @what: the failure's message. */
static int send_msg(int channel, const struct init_msg *m, const int *fds, size_t n,
		    const char *what, struct err *e)
{
	int r = fd_send(channel, m, sizeof(*m), fds, n);

	return r < 0 ? err_set(e, r, "%s", what) : 0;
}

/* Every byte of it is set, padding too: it goes to another process. */
static struct init_msg *new_msg(struct init_msg *m, uint32_t type, uint32_t id)
{
	memset(m, 0, sizeof(*m));
	m->type = type;
	m->id = id;
	return m;
}

int init_exec(int channel, const struct exec_request *x, struct err *e)
{
	struct init_msg m;
	struct init_exec *q = &new_msg(&m, INIT_EXEC, x->id)->u.exec;
	int fds[5];
	size_t n = 0;

	q->flags = x->flags | (x->script_fd >= 0 ? INIT_SCRIPT : 0u);
	q->uid = x->uid;
	q->gid = x->gid;
	q->rows = x->rows;
	q->cols = x->cols;
	_fd_ int blob = make_blob(x, q, e);

	if (blob < 0)
		return blob;
	fds[n++] = blob;
	if (x->script_fd >= 0)
		fds[n++] = x->script_fd;
	for (int i = 0; i < 3 && !(x->flags & (INIT_TTY | INIT_CONTROL | INIT_PIPES)); i++)
		fds[n++] = x->stdio[i];
	return send_msg(channel, &m, fds, n, "ask the cell to start a command", e);
}

int init_go(int channel, uint32_t id, struct err *e)
{
	struct init_msg m;

	return send_msg(channel, new_msg(&m, INIT_GO, id), NULL, 0, "let the command go", e);
}

int init_signal(int channel, uint32_t id, enum init_target target, int pid, int signo,
		struct err *e)
{
	struct init_msg m;

	new_msg(&m, INIT_SIGNAL, id)->u.signal.signo = signo;
	m.u.signal.target = target;
	m.u.signal.pid = pid;
	return send_msg(channel, &m, NULL, 0, "ask the cell to signal a command", e);
}

int init_signal_others(int channel, const uint32_t *spare, size_t n, int signo, struct err *e)
{
	struct init_msg m;

	new_msg(&m, INIT_SIGNAL, 0)->u.signal.signo = signo;
	m.u.signal.target = INIT_TARGET_OTHERS;
	for (size_t i = 0; i < n && i < INIT_SPARE_MAX; i++)
		m.u.signal.spare[i] = spare[i];
	return send_msg(channel, &m, NULL, 0, "ask the cell to signal its commands", e);
}

int init_disk(int channel, uint32_t id, struct err *e)
{
	struct init_msg m;

	return send_msg(channel, new_msg(&m, INIT_DISK, id), NULL, 0, "ask the cell about its disk",
			e);
}

int init_connect(int channel, uint32_t id, uint32_t port, uint32_t family, struct err *e)
{
	struct init_msg m;

	new_msg(&m, INIT_CONNECT, id)->u.connect.port = port;
	m.u.connect.family = family;
	return send_msg(channel, &m, NULL, 0, "ask the cell for a connection", e);
}

int init_listen(int channel, uint32_t id, enum init_listen_kind kind, uint32_t port, struct err *e)
{
	struct init_msg m;

	new_msg(&m, INIT_LISTEN, id)->u.listen.kind = kind;
	m.u.listen.port = port;
	return send_msg(channel, &m, NULL, 0, "ask the cell for a listening socket", e);
}

int init_recv(int channel, struct init_msg *ret, int ret_fds[INIT_FDS_MAX], size_t *ret_n,
	      struct err *e)
{
	ssize_t n;

	*ret_n = INIT_FDS_MAX;
	n = fd_recv(channel, ret, sizeof(*ret), ret_fds, ret_n);
	if (n == (ssize_t)sizeof(*ret))
		return 1;
	for (size_t i = 0; n > 0 && i < *ret_n; i++) /* fd_recv() has closed them otherwise */
		foreign_close(ret_fds[i]);
	*ret_n = 0;
	if (n == -EAGAIN)
		return -EAGAIN;
	if (n == 0 || n == -ECONNRESET)
		return 0;
	return err_set(e, n < 0 ? (int)n : -EPROTO, "receive from the cell");
}

#define EXIT_OURS 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

static const char *const stage_text[] = {
	[INIT_STAGE_SEAL] = "seal the cell",
	[INIT_STAGE_REQUEST] = "read the request",
	[INIT_STAGE_FORK] = "fork",
	[INIT_STAGE_TTY] = "open a terminal",
	[INIT_STAGE_CREDS] = "give up privileges",
	[INIT_STAGE_LIMITS] = "set limits",
	[INIT_STAGE_SCRIPT] = "write the script into the cell",
	[INIT_STAGE_CWD] = "enter the working directory",
	[INIT_STAGE_STDIO] = "connect stdio",
	[INIT_STAGE_EXEC] = "execute",
	[INIT_STAGE_CONNECT] = "connect to the port",
	[INIT_STAGE_LISTEN] = "listen on the port",
};
_Static_assert(ARRAY_SIZE(stage_text) == INIT_STAGE_MAX_, "stage_text[] vs enum init_stage");

int init_explain(const struct init_failed *f, const char *program, const char *cwd, struct err *e)
{
	uint32_t stage = f->stage < INIT_STAGE_MAX_ ? f->stage : (uint32_t)INIT_STAGE_REQUEST;

	if (stage == INIT_STAGE_EXEC && (f->error == ENOENT || f->error == ENOTDIR)) {
		(void)err_say(e, -f->error, "%s: not found in the cell%s", program,
			      strchr(program, ' ') ?
				      "; give a program and its arguments separately" :
				      "");
		return EXIT_NOT_FOUND;
	}
	if (stage == INIT_STAGE_EXEC && f->error != E2BIG) {
		(void)err_set(e, -f->error, "%s: found in the cell but cannot be executed",
			      program);
		return EXIT_NOT_EXECUTABLE;
	}
	if (stage == INIT_STAGE_EXEC)
		(void)err_set(e, -E2BIG, "execute %s", program);
	else if (stage == INIT_STAGE_CWD)
		(void)err_set(e, -f->error, "--workdir %s", cwd);
	else if (stage == INIT_STAGE_FORK && f->error == EAGAIN)
		(void)err_say(e, -EAGAIN, "the cell's pids limit leaves no room for the command");
	else if (stage == INIT_STAGE_CREDS && f->error == EPERM)
		(void)err_say(e, -EPERM, "--user: without root a cell has only the user 1000:1000");
	else
		(void)err_set(e, -f->error, "could not %s", stage_text[stage]);
	return EXIT_OURS;
}
