/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - Running mmdebstrap where its packages' scripts are root of nothing.
 *
 * One child with two pipes: the archive on its stdout, what it says on its stderr. Both are read
 * until they end; the archive is hashed while it is written down. Its scratch directory is its own
 * and is removed by it; what it leaves when it is killed is removed here.
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
#include <stdlib.h>
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
#include "image/digest.h"
#include "image/layer.h"
#include "image/tree.h"

#define PROGRAM "mmdebstrap"
#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define SCRATCH "/var/tmp/caisson-build-"
#define CHUNK 65536

struct builder {
	const struct build_request *request;
	bool ranged;
	char scratch[sizeof(SCRATCH) + 16]; /* "": not made */
	int go[2], out[2], say[2];
	pid_t pid;
	char line[512], last[512]; /* what it is saying; the last line that was an error */
	size_t line_len;
};

/* ---- no waiting for the disk --------------------------------------------------------------- */

/* A call that is answered with success, and not done. */
#define NOT_DONE(call)                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1),                                         \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO)

/*
 * dpkg brings each file and each line of its books to the disk before it goes on, several times a
 * package: on a disk that is slow at it that is most of a build. Nobody needs it here: if the
 * machine stops there is no image, and what is left of the archive gets no name. Without root this
 * can not be had: it would take newuidmap its power. The packages are for this machine, so the
 * numbers of its calls are the only ones.
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
			 (char *)(b->ranged ? "--mode=root" : "--mode=unshare"),
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
	if (b->ranged && (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(0, 0, 0) < 0 ||
			  setresuid(0, 0, 0) < 0))
		_exit(126);
	if (b->ranged)
		(void)sync_nothing(); /* slower without, but not worse */
	int null = open("/dev/null", O_RDONLY);

	if (null < 0 || dup2(null, 0) < 0 || dup2(b->out[1], 1) < 0 || dup2(b->say[1], 2) < 0 ||
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
	const struct idmap ids = { .ranged = true, .base = IMAGE_ID_BASE };
	struct clone_args args = { .flags = b->ranged ? NAMESPACES : 0, .exit_signal = SIGCHLD };
	int r = 0;

	if (pipe2(b->go, O_CLOEXEC) < 0 || pipe2(b->out, O_CLOEXEC) < 0 ||
	    pipe2(b->say, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make pipes");
	if (make_scratch(b) < 0)
		return err_set(e, -errno, "make a directory in /var/tmp");
	if (b->ranged && chown(b->scratch, IMAGE_ID_BASE, IMAGE_ID_BASE) < 0)
		return err_set(e, -errno, "give %s to the image store's users", b->scratch);
	b->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (b->pid < 0)
		return err_set(e, -errno, "make a user namespace to build in");
	if (b->pid == 0)
		child(b);
	b->out[1] = fd_close(b->out[1]);
	b->say[1] = fd_close(b->say[1]);
	if (b->ranged)
		r = idmap_write(&ids, b->pid, e);
	if (r == 0 && (r = fd_write_all(b->go[1], "g", 1)) < 0)
		(void)err_set(e, r, "start " PROGRAM);
	return r;
}

/* One line of what it says: progress is shown, the rest remembered. */
static void said(struct builder *b, struct show *show)
{
	b->line[b->line_len] = '\0';
	if (strncmp(b->line, "I: ", 3) == 0)
		show_step(show, "building", b->line + 3);
	else if (b->line_len > 0)
		(void)snprintf(b->last, sizeof(b->last), "%s", b->line);
	b->line_len = 0;
}

static void hear(struct builder *b, const char *data, size_t n, struct show *show)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c == '\n')
			said(b, show);
		else if (b->line_len < sizeof(b->line) - 1)
			b->line[b->line_len++] = c < ' ' || c == 0x7f ? ' ' : (char)c;
	}
}

/* Both pipes, to their ends. */
static int listen_to(struct builder *b, int to, struct digest *d, struct show *show,
		     uint64_t *ret_size, struct err *e)
{
	static char chunk[CHUNK];
	struct pollfd p[2] = { { .fd = b->out[0], .events = POLLIN },
			       { .fd = b->say[0], .events = POLLIN } };

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
				hear(b, chunk, (size_t)n, show);
			} else {
				int r = fd_write_all(to, chunk, (size_t)n);

				*ret_size += (uint64_t)n;
				if (r < 0 || digest_add(d, chunk, (size_t)n) < 0)
					return err_set(e, r < 0 ? r : -EIO, "write the archive");
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
			       " is not here, which builds images: apt-get install " PROGRAM);
	return err_say(
		e, -EIO, PROGRAM " failed: %.300s%s", b->last[0] ? b->last : "no word of why",
		b->ranged ? "" : " (without root it needs newuidmap and a line in /etc/subuid)");
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
		fd_close(b->say[i]);
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
			     .ranged = layer_ranged(),
			     .go = { -1, -1 },
			     .out = { -1, -1 },
			     .say = { -1, -1 } };
	struct digest *d = digest_new();
	int r = d ? start(&b, e) : err_set(e, -ENOMEM, "hash the archive");

	*ret_size = 0;
	if (r == 0)
		r = listen_to(&b, to, d, show, ret_size, e);
	r = finish(&b, r, e);
	if (r < 0) {
		digest_free(d);
		return r;
	}
	return digest_end(d, ret_diff_id) < 0 ? err_say(e, -EIO, "hash the archive") : 0;
}
