/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_daemon.c - What `caisson doctor` reports about a daemon that runs.
 *
 * The command speaks no HTTP. caisson-remote asks the daemon (remote/report.c) and prints a line
 * for each finding, with tabs between grade, name, finding and remedy. A line that has another form
 * is dropped.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "cli/doctor.h"
#include "client/program.h"

#define REPORT_MAX (256u << 10)

static int read_report(const char *state, struct buf *ret)
{
	char path[PATH_MAX], verb[] = "report", option[] = "--state", dir[PATH_MAX];
	char *argv[] = { verb, state ? option : NULL, dir, NULL };
	struct err e = { 0 };
	int ends[2];
	pid_t pid;

	(void)snprintf(dir, sizeof(dir), "%s", state ? state : "");
	if (program_find("caisson-remote", path, sizeof(path), &e) < 0)
		return e.code;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	const struct spawn s = { .path = path,
				 .argv = argv,
				 .envp = environ,
				 .fds = { { ends[1], STDOUT_FILENO } },
				 .n_fds = 1,
				 .no_input = true };
	int r = spawn_program(&s, &pid, &e);

	fd_close(ends[1]);
	if (r == 0) {
		r = fd_read_buf(ends[0], ret);
		(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	}
	fd_close(ends[0]);
	return r;
}

/* "weak<TAB>mcp github<TAB>2 of 5 ...<TAB>remedy" */
static bool take_line(char *line, struct check *ret)
{
	const char *grade = strsep(&line, "\t"), *name = strsep(&line, "\t");
	const char *found = strsep(&line, "\t"), *fix = line;

	if (!name || !found || !fix)
		return false;
	*ret = (struct check){ .grade = GRADE_MAX_ };
	for (int g = 0; g < GRADE_MAX_; g++)
		if (strcmp(grade_names[g], grade) == 0)
			ret->grade = (enum grade)g;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	(void)snprintf(ret->found, sizeof(ret->found), "%s", found);
	(void)snprintf(ret->fix, sizeof(ret->fix), "%s", fix);
	return ret->grade != GRADE_MAX_;
}

size_t doctor_daemon(const char *state, struct check *ret)
{
	_buf_ struct buf report = BUF_INIT(REPORT_MAX);
	char *rest, *line; /* what is read ends with NUL */
	size_t n = 0;

	if (read_report(state, &report) < 0 || report.len == 0)
		return 0;
	for (rest = report.data; n < DOCTOR_DAEMON_MAX && (line = strsep(&rest, "\n"));)
		n += take_line(line, &ret[n]);
	return n;
}
