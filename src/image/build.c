/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - Running mmdebstrap in a user namespace, in which its packages' scripts are root.
 *
 * One child with two pipes: the archive on its stdout, messages on its stderr. Both are read until
 * they end; the archive is hashed while it is written. mmdebstrap removes its scratch directory;
 * what is left when it was killed is removed here.
 */
#include "image/build.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/idmap.h"
#include "image/image_digest.h"
#include "image/image_store.h"
#include "image/layer.h"

#define PROGRAM "mmdebstrap"
#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define SCRATCH "/var/tmp/caisson-build-"
#define CHUNK 65536

struct builder {
	const struct build_request *request;
	struct idmap ids;
	char scratch[sizeof(SCRATCH) + 16]; /* "": not made */
	int go[2], out[2], log[2];
	pid_t pid;
	char line[512], last[512]; /* of its messages: the current line, and the last error */
	size_t line_len;
};

/* ---- no waiting for the disk --------------------------------------------------------------- */

/* A system call that returns success and does nothing. */
#define NOT_DONE(call)                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1),                                         \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO)

/*
 * dpkg syncs each file and each line of its database to the disk, several times per package: on a
 * slow disk that is most of the time of a build. It serves nothing here: if the machine stops there
 * is no image, and the unfinished archive gets no name. Not without root: no-new-privileges, which
 * such a filter takes then, would keep newuidmap from its capability. The packages are for this
 * machine, so its own numbers of system calls are the only ones.
 */
static int sync_nothing(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		NOT_DONE(SYS_fsync),
		NOT_DONE(SYS_fdatasync),
		NOT_DONE(SYS_sync_file_range),
		NOT_DONE(SYS_syncfs),
		NOT_DONE(SYS_sync),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* ---- the child ----------------------------------------------------------------------------- */

static _Noreturn void child(const struct builder *b)
{
	const struct build_request *w = b->request;
	char tmp[sizeof("TMPDIR=") + sizeof(SCRATCH) + 16], include[4096];
	char *argv[] = { (char *)PROGRAM,
			 (char *)(b->ids.ranged ? "--mode=root" : "--mode=unshare"),
			 (char *)"--variant=minbase",
			 (char *)"--format=tar",
			 include,
			 (char *)"--dpkgopt=force-unsafe-io",
			 (char *)"--dpkgopt=path-exclude=/usr/share/doc/*",
			 (char *)"--dpkgopt=path-exclude=/usr/share/man/*",
			 (char *)"--dpkgopt=path-exclude=/usr/share/locale/*",
			 (char *)w->suite,
			 (char *)"-",
			 (char *)w->mirror,
			 NULL };
	char *env[8] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"HOME=/",
			 (char *)"LC_ALL=C.UTF-8", (char *)"DEBIAN_FRONTEND=noninteractive", tmp };
	size_t n = 5;
	char word;

	for (char **v = environ; *v && n < ARRAY_SIZE(env) - 1; v++)
		if (strncmp(*v, "http_proxy=", 11) == 0 || strncmp(*v, "https_proxy=", 12) == 0)
			env[n++] = *v;
	(void)snprintf(tmp, sizeof(tmp), "TMPDIR=%s", b->scratch);
	(void)snprintf(include, sizeof(include), "--include=%s", w->packages);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || read(b->go[0], &word, 1) != 1)
		_exit(126);
	if (b->ids.ranged && (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(0, 0, 0) < 0 ||
			      setresuid(0, 0, 0) < 0))
		_exit(126);
	if (b->ids.ranged)
		(void)sync_nothing(); /* the build is only slower without it */
	int null = open("/dev/null", O_RDONLY);

	if (null < 0 || dup2(null, 0) < 0 || dup2(b->out[1], 1) < 0 || dup2(b->log[1], 2) < 0 ||
	    syscall(SYS_close_range, 3u, ~0u, 0u) < 0 || chdir("/") < 0)
		_exit(126);
	(void)execvpe(PROGRAM, argv, env);
	_exit(errno == ENOENT ? 127 : 126);
}

/* ---- the parent ---------------------------------------------------------------------------- */

static int make_scratch(struct builder *b)
{
	unsigned long long r = 0;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -1;
	(void)snprintf(b->scratch, sizeof(b->scratch), SCRATCH "%016llx", r);
	if (mkdir(b->scratch, 0700) == 0)
		return 0;
	b->scratch[0] = '\0';
	return -1;
}

static int start(struct builder *b, struct err *e)
{
	struct clone_args args = { .flags = b->ids.ranged ? NAMESPACES : 0,
				   .exit_signal = SIGCHLD };
	int r = 0;

	if (pipe2(b->go, O_CLOEXEC) < 0 || pipe2(b->out, O_CLOEXEC) < 0 ||
	    pipe2(b->log, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make pipes");
	if (make_scratch(b) < 0)
		return err_set(e, -errno, "make a directory in /var/tmp");
	if (b->ids.ranged && chown(b->scratch, IMAGE_ID_BASE, IMAGE_ID_BASE) < 0)
		return err_set(e, -errno, "give %s to the image store's users", b->scratch);
	b->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (b->pid < 0)
		return err_set(e, -errno, "make a user namespace to build in");
	if (b->pid == 0)
		child(b);
	b->out[1] = fd_close(b->out[1]);
	b->log[1] = fd_close(b->log[1]);
	if (b->ids.ranged)
		r = idmap_write(&b->ids, b->pid, e);
	if (r == 0 && (r = fd_write_all(b->go[1], "g", 1)) < 0)
		(void)err_set(e, r, "start " PROGRAM);
	return r;
}

/* One line of messages: progress is shown, the last of the others is kept. */
static void take_line(struct builder *b, struct show *show)
{
	b->line[b->line_len] = '\0';
	if (strncmp(b->line, "I: ", 3) == 0)
		show_step(show, "building", b->line + 3);
	else if (b->line_len > 0)
		(void)snprintf(b->last, sizeof(b->last), "%s", b->line);
	b->line_len = 0;
}

static void take_messages(struct builder *b, const char *data, size_t n, struct show *show)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c == '\n')
			take_line(b, show);
		else if (b->line_len < sizeof(b->line) - 1)
			b->line[b->line_len++] = c < ' ' || c == 0x7f ? ' ' : (char)c;
	}
}

/* Read both pipes to their ends. */
static int read_pipes(struct builder *b, int to, struct hash *h, struct show *show,
		      uint64_t *ret_size, struct err *e)
{
	static char chunk[CHUNK];
	struct pollfd p[2] = { { .fd = b->out[0], .events = POLLIN },
			       { .fd = b->log[0], .events = POLLIN } };

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for " PROGRAM);
		for (size_t i = 0; i < 2; i++) {
			if (p[i].fd < 0 || !p[i].revents)
				continue;
			ssize_t n = read(p[i].fd, chunk, sizeof(chunk));

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0) {
				p[i].fd = -1;
			} else if (i == 1) {
				take_messages(b, chunk, (size_t)n, show);
			} else {
				int r = fd_write_all(to, chunk, (size_t)n);

				if (r < 0)
					return err_set(e, r, "write the archive");
				*ret_size += (uint64_t)n;
				hash_add(h, chunk, (size_t)n);
			}
		}
	}
	return 0;
}

static int judge(const struct builder *b, int status, struct err *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_say(e, -ENOENT,
			       PROGRAM
			       ", which builds images, is not installed: apt-get install " PROGRAM);
	return err_say(e, -EIO, PROGRAM " failed: %.300s%s",
		       b->last[0] ? b->last : "it gave no reason",
		       b->ids.ranged ?
			       "" :
			       " (without root it needs newuidmap and a line in /etc/subuid)");
}

static int finish(struct builder *b, int r, struct err *e)
{
	int status = 0;

	if (b->pid > 0) {
		if (r < 0)
			(void)kill(b->pid, SIGKILL);
		while (waitpid(b->pid, &status, 0) < 0 && errno == EINTR)
			;
		if (r == 0)
			r = judge(b, status, e);
	}
	for (size_t i = 0; i < 2; i++) {
		fd_close(b->go[i]);
		fd_close(b->out[i]);
		fd_close(b->log[i]);
	}
	if (b->scratch[0]) {
		_fd_ int top = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		(void)tree_remove(top, strrchr(b->scratch, '/') + 1, NULL);
	}
	return r;
}

int build_tar(const struct build_request *w, int to, struct show *show,
	      char ret_diff_id[IMAGE_DIGEST_MAX], uint64_t *ret_size, struct err *e)
{
	struct builder b = { .request = w,
			     .ids = layer_ids(),
			     .go = { -1, -1 },
			     .out = { -1, -1 },
			     .log = { -1, -1 } };
	_hash_ struct hash h = { 0 };
	int r = start(&b, e);

	*ret_size = 0;
	hash_begin(&h);
	if (r == 0)
		r = read_pipes(&b, to, &h, show, ret_size, e);
	r = finish(&b, r, e);
	if (r == 0 && digest_end(&h, ret_diff_id) < 0)
		r = err_say(e, -EIO, "hash the archive");
	return r;
}
