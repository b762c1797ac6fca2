/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_driver.c - Drives file calls of a real cell for the tests, as the daemon does but by hand.
 *
 * usage: files-driver STATE_DIR [MEMORY_MIB DISK_MIB PIDS]
 *
 * Makes one cell, prints "ready", and takes commands from stdin, one per line. Bytes are
 * hexadecimal digits ("-": none).
 *
 *   sh HEX              run a shell script: "out HEX", "exited STATUS"
 *   call OP FLAGS MODE DEPTH OFFSET LENGTH LIMIT PATH TO INPUT
 *                       one file call to its end. INPUT: digits, "abort:" and digits to close
 *                       before the end, "zeros:N", or "raw:" and digits for bytes without frames
 *   open (as call)      start a call and leave it running
 *   next                wait for its next messages and print them
 *   hangup              close its pipes and wait for its end
 *   repeat N (as call)  the call N times; one line with the number of each errno. A watch, which
 *                       has no end, is closed at its first event, or with the offset 1 at its
 *                       first message
 *   needle HEX          from now on count the pieces of content, names and targets that contain
 *                       these bytes: the last word of "errors"
 *
 * Answers: stat, data, event, end, failed, exited; then ".".
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "client/files_client.h"
#include "client/init_client.h"
#include "client/warden_client.h"

static int channel;
static uint32_t ids;
static bool quiet;
static bool is_watch, hang_up_early; /* of what is repeated */
static int last_error;               /* of the last end */
static char needle[64];
static size_t needle_len;
static unsigned int found;

static _Noreturn void die(const char *what, const struct err *e)
{
	(void)fprintf(stderr, "files-driver: %s: %s\n", what, e ? e->msg : strerror(errno));
	exit(2);
}

/* ---- digits ---------------------------------------------------------------------------------- */

static unsigned int digit(char c)
{
	return c <= '9' ? (unsigned int)(c - '0') : (unsigned int)(c - 'a') + 10;
}

static size_t from_hex(const char *hex, char *to, size_t size)
{
	size_t n = 0;

	if (strcmp(hex, "-") == 0)
		return 0;
	for (; hex[0] && hex[1] && n < size; hex += 2)
		to[n++] = (char)(digit(hex[0]) << 4 | digit(hex[1]));
	return n;
}

static void put_hex(const char *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	if (len == 0)
		(void)putchar('-');
	for (size_t i = 0; i < len; i++) {
		(void)putchar(digits[(unsigned char)data[i] >> 4]);
		(void)putchar(digits[data[i] & 15]);
	}
}

static void look(const char *data, size_t len)
{
	if (needle_len > 0 && len > 0 && memmem(data, len, needle, needle_len))
		found++;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int on_stat(void *arg, const struct files_stat *s, struct files_text name,
		   struct files_text target)
{
	(void)arg;
	look(name.data, name.len);
	look(target.data, target.len);
	if (hang_up_early)
		last_error = 0;
	if (quiet)
		return 0;
	(void)printf("stat %u %u %" PRIu64 " %" PRId64 " %" PRIu64 " %u %u %u ", s->type, s->mode,
		     s->size, s->mtime_ns, s->ino, s->nlink, s->uid, s->gid);
	put_hex(name.data, name.len);
	(void)putchar(' ');
	put_hex(target.data, target.len);
	(void)putchar('\n');
	return 0;
}

static int on_data(void *arg, const char *data, size_t len)
{
	(void)arg;
	look(data, len);
	if (quiet)
		return 0;
	(void)printf("data ");
	put_hex(data, len);
	(void)putchar('\n');
	return 0;
}

static int on_event(void *arg, const struct files_event *e, struct files_text name,
		    struct files_text from)
{
	(void)arg;
	look(name.data, name.len);
	look(from.data, from.len);
	last_error = 0;
	if (quiet)
		return 0;
	(void)printf("event %u %u ", e->kind, e->is_dir);
	put_hex(name.data, name.len);
	(void)putchar(' ');
	put_hex(from.data, from.len);
	(void)putchar('\n');
	return 0;
}

static int on_end(void *arg, const struct files_end *e, struct files_text where)
{
	(void)arg;
	last_error = e->error;
	if (quiet)
		return 0;
	(void)printf("end %d %u %" PRIu64 " %" PRIu64 " ", e->error, e->flags, e->bytes, e->count);
	put_hex(where.data, where.len);
	(void)putchar('\n');
	return 0;
}

static const struct files_sink sink = {
	.stat = on_stat,
	.data = on_data,
	.event = on_event,
	.end = on_end,
};

/* ---- the channel ----------------------------------------------------------------------------- */

static void hear(struct init_msg *m, int fds[INIT_FDS_MAX], size_t *n)
{
	struct err e;

	if (init_recv(channel, m, fds, n, &e) != 1)
		die("the cell is gone", &e);
}

/* The next message about @id. */
static void hear_of(uint32_t id, struct init_msg *m, int fds[INIT_FDS_MAX], size_t *n)
{
	do
		hear(m, fds, n);
	while (m->id != id);
}

static void wait_exit(uint32_t id)
{
	struct init_msg m;
	int fds[INIT_FDS_MAX];
	size_t n;

	do
		hear_of(id, &m, fds, &n);
	while (m.type != INIT_EXITED);
	if (!quiet)
		(void)printf("exited %d\n", m.u.exited.status);
}

/* ---- one call -------------------------------------------------------------------------------- */

struct call {
	uint32_t id;
	int in, out; /* -1: closed */
	const char *raw, *input;
	size_t zeros, at, len;
	char *bytes;
	bool abort, framed;
	struct files_parser parser;
};

static bool call_begin(struct call *c, char **word)
{
	static char path[65536], to[65536];
	struct files_request q = { .id = ++ids, .uid = CELL_UID, .gid = CELL_GID };
	struct init_msg m;
	struct err e;
	int fds[INIT_FDS_MAX];
	size_t n;

	q.op = (uint32_t)strtoul(word[0], NULL, 10);
	q.flags = (uint32_t)strtoul(word[1], NULL, 10);
	q.mode = (uint32_t)strtoul(word[2], NULL, 8);
	q.depth = (uint32_t)strtoul(word[3], NULL, 10);
	q.offset = strtoull(word[4], NULL, 10);
	q.length = strtoull(word[5], NULL, 10);
	q.limit = strtoull(word[6], NULL, 10);
	path[from_hex(word[7], path, sizeof(path) - 1)] = '\0';
	to[from_hex(word[8], to, sizeof(to) - 1)] = '\0';
	q.path = path;
	q.to = to;
	*c = (struct call){ .id = q.id, .in = -1, .out = -1 };
	if (files_ask(channel, &q, &e) < 0) {
		(void)printf("refused %d\n", -e.code);
		return false;
	}
	hear_of(q.id, &m, fds, &n);
	if (m.type == INIT_FAILED) {
		last_error = m.u.failed.error;
		if (!quiet)
			(void)printf("failed %u %d\n", m.u.failed.stage, m.u.failed.error);
		return false;
	}
	if (m.type != INIT_STARTED || n != 2)
		die("no descriptors came", NULL);
	c->in = fds[0];
	c->out = fds[1];
	(void)fcntl(c->in, F_SETFL, O_NONBLOCK);
	return true;
}

/* The input as one run of bytes, frames and all. */
static void call_input(struct call *c, const char *word)
{
	size_t zeros = strncmp(word, "zeros:", 6) == 0 ? strtoull(word + 6, NULL, 10) : 0;
	bool raw = strncmp(word, "raw:", 4) == 0;
	bool abort_it = strncmp(word, "abort:", 6) == 0;
	const char *digits = abort_it ? word + 6 : raw ? word + 4 : zeros ? "" : word;
	size_t len = zeros ? zeros : strlen(digits) / 2;
	char *data = calloc(1, len + 1);
	struct files_frame head = files_head(0);

	if (!data)
		die("memory", NULL);
	len = zeros ? zeros : from_hex(digits, data, len);
	c->bytes = malloc(len + (len / 1000 + 3) * sizeof(head));
	c->len = 0;
	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < 60000 ? len - at : 60000;
		head = files_head(n);
		if (!raw) {
			memcpy(c->bytes + c->len, &head, sizeof(head));
			c->len += sizeof(head);
		}
		memcpy(c->bytes + c->len, data + at, n);
		c->len += n;
	}
	head = files_head(0);
	if (!raw && !abort_it) {
		memcpy(c->bytes + c->len, &head, sizeof(head));
		c->len += sizeof(head);
	}
	free(data);
}

static void call_write(struct call *c)
{
	ssize_t n = write(c->in, c->bytes + c->at, c->len - c->at);

	if (n > 0)
		c->at += (size_t)n;
	if ((n < 0 && errno != EAGAIN) || c->at == c->len)
		c->in = fd_close(c->in);
}

static void call_read(struct call *c)
{
	static char data[FILES_FRAME_MAX];
	ssize_t n = read(c->out, data, sizeof(data));

	if (n <= 0)
		c->out = fd_close(c->out);
	else if (files_feed(&c->parser, &sink, NULL, data, (size_t)n) < 0)
		die("nonsense came", NULL);
}

static void call_free(struct call *c)
{
	c->in = fd_close(c->in);
	c->out = fd_close(c->out);
	free(c->bytes);
	c->bytes = NULL;
	files_parser_free(&c->parser);
}

static void do_call(char **word)
{
	struct call c;

	last_error = -1;
	if (!call_begin(&c, word))
		return;
	call_input(&c, word[9]);
	if (c.len == 0)
		c.in = fd_close(c.in);
	while (c.out >= 0) {
		struct pollfd p[] = { { .fd = c.out, .events = POLLIN },
				      { .fd = c.in, .events = POLLOUT } };

		if (poll(p, 2, 30000) <= 0)
			die("a call hangs", NULL);
		if (p[1].revents)
			call_write(&c);
		if (p[0].revents)
			call_read(&c);
		if (is_watch && last_error == 0)
			c.out = fd_close(c.out);
	}
	call_free(&c);
	wait_exit(c.id);
}

static void do_repeat(char **word)
{
	static unsigned int count[4096];
	unsigned long n = strtoul(word[0], NULL, 10);

	memset(count, 0, sizeof(count));
	quiet = true;
	is_watch = strtoul(word[1], NULL, 10) == FILES_WATCH;
	hang_up_early = is_watch && strtoul(word[5], NULL, 10) == 1;
	for (unsigned long i = 0; i < n; i++) {
		do_call(word + 1);
		count[last_error & 4095]++;
	}
	quiet = is_watch = hang_up_early = false;
	(void)printf("errors");
	for (unsigned int i = 0; i < ARRAY_SIZE(count); i++)
		if (count[i])
			(void)printf(" %u:%u", i, count[i]);
	(void)printf(" found:%u\n", found);
}

/* ---- a shell --------------------------------------------------------------------------------- */

static void do_shell(const char *hex)
{
	static char script[65536];
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	const char *envp[] = { "PATH=" CELL_PATH, NULL };
	struct exec_request x = { .id = ++ids, .cwd = CELL_WORKDIR, .argv = argv, .envp = envp };
	struct init_msg m;
	struct err e;
	int in[2], out[2], fds[INIT_FDS_MAX];
	size_t n;
	char data[4096];

	script[from_hex(hex, script, sizeof(script) - 1)] = '\0';
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe", NULL);
	fd_close(in[1]); /* an empty stdin */
	_fd_ int empty = in[0];

	x.script_fd = -1;
	x.stdio[0] = empty;
	x.stdio[1] = x.stdio[2] = out[1];
	x.uid = CELL_UID;
	x.gid = CELL_GID;
	if (init_exec(channel, &x, &e) < 0)
		die("exec", &e);
	hear_of(x.id, &m, fds, &n);
	fd_close(out[1]);
	if (m.type != INIT_STARTED) {
		(void)printf("failed %u %d\n", m.u.failed.stage, m.u.failed.error);
		fd_close(out[0]);
		return;
	}
	for (ssize_t got; (got = read(out[0], data, sizeof(data))) > 0;) {
		(void)printf("out ");
		put_hex(data, (size_t)got);
		(void)putchar('\n');
	}
	fd_close(out[0]);
	wait_exit(x.id);
}

/* ---- lines ----------------------------------------------------------------------------------- */

#define WORDS 12

static void obey(char *line)
{
	static struct call held;
	char *word[WORDS] = { 0 }, *rest = line;
	size_t n = 0;

	while (n < WORDS && (word[n] = strsep(&rest, " \n")) && *word[n])
		n++;
	if (n == 2 && strcmp(word[0], "sh") == 0) {
		do_shell(word[1]);
	} else if (n == 2 && strcmp(word[0], "needle") == 0) {
		needle_len = from_hex(word[1], needle, sizeof(needle));
	} else if (n == 11 && strcmp(word[0], "call") == 0) {
		do_call(word + 1);
	} else if (n == 12 && strcmp(word[0], "repeat") == 0) {
		do_repeat(word + 1);
	} else if (n == 11 && strcmp(word[0], "open") == 0) {
		if (call_begin(&held, word + 1))
			call_input(&held, "-");
	} else if (n == 1 && strcmp(word[0], "next") == 0) {
		if (held.out >= 0)
			call_read(&held);
	} else if (n == 1 && strcmp(word[0], "hangup") == 0) {
		call_free(&held);
		wait_exit(held.id);
	} else {
		(void)printf("what? %zu words\n", n);
	}
	(void)printf(".\n");
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	struct warden_client warden;
	struct warden_cell cell;
	struct cell_spec spec;
	struct init_msg m;
	struct err e = { 0 };
	int fds[INIT_FDS_MAX];
	size_t n, cap = 0;
	char *line = NULL;

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return 2;
	spec_default(&spec);
	spec.limits.wall_ms = 600000;
	if (argc > 4) {
		spec.limits.memory_bytes = strtoull(argv[2], NULL, 10) << 20;
		spec.limits.disk_bytes = strtoull(argv[3], NULL, 10) << 20;
		spec.limits.pids = strtoull(argv[4], NULL, 10);
	}
	if (warden_start(argv[1], &warden, &e) < 0)
		die("warden", &e);
	if (warden_create(&warden, &spec, NULL, 0, &cell, &e) < 0)
		die("cell", &e);
	channel = cell.channel;
	hear(&m, fds, &n);
	if (m.type != INIT_READY)
		die("not ready", NULL);
	(void)printf("ready\n");
	(void)fflush(stdout);
	while (getline(&line, &cap, stdin) > 0)
		obey(line);
	free(line);
	warden_stop(&warden);
	return 0;
}
