/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - Write the file of certificates into a cell. By a file call of its own: the sandbox
 * cannot be entered yet. */
#include "front/secrets/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "cell/spec.h"
#include "client/files_client.h"
#include "front/sandbox/sandboxes.h"

#define BUNDLE_MAX (4u << 20)

static struct trust *of_job(struct cell_command *job)
{
	return (struct trust *)((char *)job - offsetof(struct trust, job));
}

int trust_roots(void)
{
	static const char *const files[] = { "/etc/ssl/certs/ca-certificates.crt",
					     "/etc/pki/tls/certs/ca-bundle.crt",
					     "/etc/ssl/cert.pem" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);

		if (fd >= 0)
			return fd;
	}
	return -1;
}

void trust_vars(json_t *vars)
{
	static const char *const names[] = { "SSL_CERT_FILE",  "REQUESTS_CA_BUNDLE",
					     "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
					     "PIP_CERT",       "NODE_EXTRA_CA_CERTS" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!json_object_get(vars, names[i]))
			(void)json_object_set_new(vars, names[i], json_string(TRUST_PATH));
}

/* ---- the call ------------------------------------------------------------------------------ */

void trust_cancel(struct trust *t)
{
	if (!t->cell)
		return;
	cell_forget(t->cell, &t->job);
	loop_del(&t->in);
	t->in.fd = fd_close(t->in.fd);
	t->out = fd_close(t->out);
	buf_free(&t->text);
	t->cell = NULL;
}

static void finish(struct trust *t, const char *problem)
{
	trust_cancel(t);
	t->done(t, problem);
}

static void on_writable(struct watch *w, uint32_t events)
{
	struct trust *t = w->arg;

	(void)events;
	while (t->at < t->text.len) {
		ssize_t n = foreign_write(w->fd, t->text.data + t->at, t->text.len - t->at,
					  &t->cell->stalled_ns);

		if (n == -EAGAIN)
			return;
		if (n < 0)
			break; /* the end of the call has the reason */
		t->at += (size_t)n;
	}
	loop_del(w);
	w->fd = fd_close(w->fd);
}

static void on_started(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct trust *t = of_job(job);

	(void)pid;
	if (n_fds != 2) {
		finish(t, "the cell did not take the certificates");
		return;
	}
	t->in = (struct watch){
		.fd = TAKE_FD(fds[0]), .events = EPOLLOUT, .fn = on_writable, .arg = t
	};
	t->out = TAKE_FD(fds[1]);
	if (loop_add(t->cell->cells->loop, &t->in, NULL) < 0)
		finish(t, "the daemon is out of descriptors");
}

static void on_failed(struct cell_command *job, const struct init_failed *f)
{
	(void)f;
	finish(of_job(job), "the certificates could not be written into the cell");
}

static void on_exited(struct cell_command *job, const struct init_exited *x)
{
	bool good = x->status == 0;

	finish(of_job(job), good ? NULL : "the certificates could not be written into the cell");
}

static int append_file(struct buf *out, int fd)
{
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0 || st.st_size < 0 || st.st_size > BUNDLE_MAX)
		return -EFBIG;
	char *to = buf_reserve(out, (size_t)st.st_size + 1);

	if (!to || pread(fd, to, (size_t)st.st_size, 0) != st.st_size)
		return -EIO;
	buf_commit(out, (size_t)st.st_size);
	return buf_append(out, "\n", 1);
}

static int put_frames(struct buf *out, const struct buf *text)
{
	for (size_t at = 0; at < text->len;) {
		size_t n = text->len - at < FILES_FRAME_MAX ? text->len - at : FILES_FRAME_MAX;
		struct files_frame head = files_head(n);

		(void)buf_append(out, &head, sizeof(head));
		(void)buf_append(out, text->data + at, n);
		at += n;
	}
	struct files_frame end = files_head(0);

	return buf_append(out, &end, sizeof(end));
}

int trust_begin(struct trust *t, struct cell *r, int roots, int pem, struct err *e)
{
	_buf_ struct buf bundle = BUF_INIT(2 * BUNDLE_MAX);
	struct files_request q = { .op = FILES_WRITE,
				   .flags = FILES_PARENTS,
				   .path = TRUST_PATH,
				   .uid = CELL_UID,
				   .gid = CELL_GID };

	trust_cancel(t);
	buf_init(&t->text, 3 * BUNDLE_MAX);
	if (append_file(&bundle, roots) < 0 || append_file(&bundle, pem) < 0 ||
	    put_frames(&t->text, &bundle) < 0) {
		buf_free(&t->text);
		return err_say(e, -EIO, "the certificates could not be put together");
	}
	t->at = 0;
	t->in.fd = t->out = -1;
	t->job = (struct cell_command){ .started = on_started,
					.failed = on_failed,
					.exited = on_exited };
	int code = cell_files(r, &t->job, &q, e);

	if (code == 0)
		t->cell = r;
	else
		buf_free(&t->text);
	return code;
}
