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

#include "base/err.h"
#include "base/fd.h"
#include "ledger/ledger.h"

static void answer(const struct ledger *l, int r, const struct err *e)
{
	if (r < 0)
		(void)printf("error %s %s\n", strerrorname_np(-r), e->msg);
	else
		(void)printf("%s %llu %s\n", ledger_ok(l) ? "ok" : "waiting",
			     (unsigned long long)ledger_head(l)->seq, ledger_head(l)->hash);
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
	answer(l, r, &e);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		answer(l, append(l, line, &e), &e);
	}
	ledger_close(l);
	return r < 0;
}
