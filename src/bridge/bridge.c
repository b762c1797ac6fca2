/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge.c - caisson-bridge: the client of the MCP servers that an operator configured.
 *
 * The front starts it before its jail, with the rights of the user who started the daemon. It opens
 * the named files first; then, as root, it becomes the user whose servers these are, and stays root
 * only with --mcp-user root: programs that a file names are run. Then it reads the files, and
 * reports their errors to the front.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "bridge/bridge_log.h"
#include "bridge/config.h"
#include "client/packet.h"
#include "wire/bridge.h"

#define FILES_MAX 64
#define EXIT_FAILED 125

struct settings {
	const char *files[FILES_MAX + 1]; /* ends with NULL */
	int fds[FILES_MAX];
	bool discover;
	const char *user;
	const char *self[2];
};

/* ---- arguments ----------------------------------------------------------------------------- */

static int set_log(void *target, const char *v, struct err *e)
{
	(void)target;
	(void)e;
	log_setup(v[0] == 'd' ? LOG_DEBUG :
		  v[0] == 'i' ? LOG_INFO :
		  v[0] == 'w' ? LOG_WARNING :
				LOG_ERROR,
		  strchr(v, 'j') != NULL);
	return 0;
}

#define AT(member) offsetof(struct settings, member)

static const struct option_row rows[] = {
	{ "--config", NULL, "FILE", OPTION_LIST, AT(files), .max = FILES_MAX },
	{ "--discover", NULL, NULL, OPTION_FLAG, AT(discover) },
	{ "--user", NULL, "NAME", OPTION_STRING, AT(user) },
	{ "--listen", NULL, "ADDRESS", OPTION_STRING, AT(self) },
	{ "--log", NULL, "LEVEL", OPTION_CUSTOM, 0, .set = set_log },
};

static int parse(struct settings *w, int argc, char **argv, struct err *e)
{
	struct options p = { .rows = rows, .n_rows = ARRAY_SIZE(rows), .target = w };

	if (options_arguments(&p, argc, argv, e) == 0)
		return 0;
	return err_wrap(e, "caisson-bridge is started by caisson serve");
}

/* ---- identity ------------------------------------------------------------------------------ */

static int open_files(struct settings *w, struct err *e)
{
	for (size_t i = 0; w->files[i]; i++) {
		w->fds[i] = open(w->files[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (w->fds[i] < 0)
			return err_set(e, -errno, "--mcp-config %s", w->files[i]);
	}
	return 0;
}

static int find_user(const struct settings *w, const struct passwd **ret, struct err *e)
{
	struct stat st;

	*ret = NULL;
	if (w->user) {
		*ret = getpwnam(w->user);
		if (!*ret)
			return err_say(e, -ENOENT, "--mcp-user: there is no user '%s'", w->user);
		if (geteuid() != 0 && (*ret)->pw_uid != geteuid())
			return err_say(e, -EPERM,
				       "--mcp-user: only root can run MCP servers as another user");
		return 0;
	}
	if (geteuid() != 0)
		return 0;
	if (!w->files[0])
		return err_say(e, -EINVAL,
			       "--mcp-discover: as root, name the user whose files and MCP servers "
			       "are meant with --mcp-user NAME");
	if (fstat(w->fds[0], &st) < 0)
		return err_set(e, -errno, "--mcp-config %s", w->files[0]);
	if (st.st_uid == 0)
		return err_say(
			e, -EPERM,
			"--mcp-config %s: the file is root's, and what it names would be run "
			"as root; give --mcp-user NAME, or --mcp-user root if that is meant",
			w->files[0]);
	*ret = getpwuid(st.st_uid);
	if (!*ret)
		return err_say(e, -ENOENT,
			       "--mcp-config %s: its owner %u is not a user of this machine; give "
			       "--mcp-user NAME",
			       w->files[0], st.st_uid);
	return 0;
}

static int become(const struct passwd *pw, struct err *e)
{
	if (!pw)
		return 0;
	if (geteuid() == 0 && pw->pw_uid != 0 &&
	    (initgroups(pw->pw_name, pw->pw_gid) < 0 ||
	     setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
	     setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0))
		return err_set(e, -errno, "--mcp-user: become %s", pw->pw_name);
	if (pw->pw_uid != 0 && setresuid(0, 0, 0) == 0)
		return err_say(e, -EPERM, "still able to become root after giving it up");
	if (setenv("HOME", pw->pw_dir, 1) < 0)
		return err_set(e, -errno, "set HOME");
	return 0;
}

/* The operator may have told the Linux kernel to end the daemon last when memory runs out; MCP
 * servers get the normal score. */
static void reset_oom_score(void)
{
	char now[16];

	if (fd_read_file(AT_FDCWD, "/proc/self/oom_score_adj", now, sizeof(now)) > 0 &&
	    now[0] == '-')
		(void)fd_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "0");
}

static int settle(struct err *e)
{
	const struct rlimit no_core = { 0, 0 };
	size_t seed = 0;

	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(e, -errno, "become undumpable");
	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return err_set(e, -errno, "getrandom");
	json_object_seed(seed | 1);
	fd_many();
	return 0;
}

/* ---- configuration ------------------------------------------------------------------------- */

static void note(void *arg, const char *text)
{
	(void)arg;
	log_text(LOG_WARNING, "mcp_config", NULL, "%s", text);
}

static const char *variable(const char *name)
{
	return getenv(name);
}

static int load(struct settings *w, struct bridge_config *c, struct err *e)
{
	char cwd[PATH_MAX];
	const char *home = getenv("HOME");
	int r = 0;

	for (size_t i = 0; w->files[i] && r == 0; i++) {
		_buf_ struct buf text = BUF_INIT(BRIDGE_FILE_MAX);

		r = bridge_read_file(w->fds[i], w->files[i], &text, e);
		w->fds[i] = fd_close(w->fds[i]);
		if (r == 0)
			r = bridge_config_add(c, w->files[i], buf_str(&text), text.len, true, e);
	}
	if (r == 0 && w->discover)
		r = bridge_discover(c, home ? home : "/", getcwd(cwd, sizeof(cwd)), e);
	return r;
}

static int refuse(const struct err *e)
{
	struct packet_queue q;
	json_auto_t *head = json_pack("{s:s, s:s}", "event", "refused", "message", e->msg);
	_mem_ char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;

	packet_queue_init(&q);
	if (!text || packet_put(&q, BRIDGE_FD, text, strlen(text), NULL, 0) < 0)
		(void)fprintf(stderr, "caisson-bridge: %s\n", e->msg);
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	static struct settings w;
	struct bridge_config c = { .note = note, .variable = variable, .self = w.self };
	const struct passwd *pw = NULL;
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	reset_oom_score(); /* while our files in /proc are still ours */
	if (parse(&w, argc, argv, &e) < 0 || open_files(&w, &e) < 0 || find_user(&w, &pw, &e) < 0 ||
	    become(pw, &e) < 0 || settle(&e) < 0 || load(&w, &c, &e) < 0)
		return refuse(&e);
	if (fcntl(BRIDGE_FD, F_SETFD, FD_CLOEXEC) < 0)
		return EXIT_FAILED;
	int r = bridge_supervise(&c, BRIDGE_FD);

	bridge_config_free(&c);
	return r;
}
