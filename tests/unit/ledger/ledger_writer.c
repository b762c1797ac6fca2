/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_writer.c - A program that appends events from stdin to a ledger, for tests from outside.
 *
 * usage: ledger-writer DIR FILE_BYTES
 * Each line on stdin is an event: EVENT OWNER SANDBOX TEXT, separated by tabs; "-" is empty; an
 * empty line syncs. The answer to each, and to the start, is a line: "ok SEQ HASH", or "error ERRNO
 * MESSAGE".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "ledger/ledger.h"
#include "ledger/ledger_reader.h"

static struct chain_link head; /* the last line */

/* Of the file that is written, which has a line of at most CHAIN_LINE_MAX bytes at its end. */
static void read_head(int dir)
{
	static char text[CHAIN_LINE_MAX];
	_fd_ int fd = openat(dir, LEDGER_CURRENT, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	size_t want = (size_t)size < sizeof(text) ? (size_t)size : sizeof(text);
	struct chain_line line;

	if (want == 0 || pread(fd, text, want, size - (off_t)want) != (ssize_t)want)
		return;
	const char *before = memrchr(text, '\n', want - 1);
	const char *last = before ? before + 1 : text;

	if (chain_parse(last, (size_t)(text + want - 1 - last), &line) != NULL)
		return;
	head.seq = line.seq;
	memcpy(head.hash, line.hash, CHAIN_HEX);
}

static void answer(bool waits, int r, const struct err *e)
{
	if (r < 0)
		(void)printf("error %s %s\n", strerrorname_np(-r), e->msg);
	else
		(void)printf("%s %llu %s\n", waits ? "waiting" : "ok", (unsigned long long)head.seq,
			     head.hash);
	(void)fflush(stdout);
}

static const char *part(char **save)
{
	const char *s = strsep(save, "\t");

	return s && strcmp(s, "-") != 0 ? s : NULL;
}

static int append(struct ledger *l, char *line, struct err *e)
{
	char *save = line;
	const char *event = part(&save), *owner = part(&save), *sandbox = part(&save);
	const char *text = part(&save);

	if (!event || !*event)
		return ledger_sync(l, e);
	return ledger_record(l, e, event, owner, sandbox, L_STR("text", text),
			     L_SHA256("code_sha256", text ? text : "", text ? strlen(text) : 0),
			     L_OBJECT("usage"), L_UINT("cpu_ms", 12), L_BOOL("oom", false), L_END);
}

int main(int argc, char **argv)
{
	struct ledger *l = NULL;
	struct reader_report report = { 0 };
	struct err e = { 0 };
	char line[8192];
	int r;

	if (argc != 3)
		return 2;
	const struct ledger_config config = { .file_bytes = strtoull(argv[2], NULL, 10) };
	_fd_ int dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return 2;
	(void)signal(SIGXFSZ, SIG_IGN);
	r = ledger_open(dir, &config, &l, &e);
	chain_start(&head);
	if (r == 0 && reader_run(dir, true, NULL, NULL, &report, NULL) == 0)
		head = report.head;
	/* A cut-off last line that is still there waits for room on the disk. */
	answer(r == 0 && report.torn > 0, r, &e);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		int done = append(l, line, &e);

		read_head(dir);
		answer(false, done, &e);
	}
	ledger_close(l);
	return r < 0;
}
