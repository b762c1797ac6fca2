/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - `caisson image build`: an image from Debian packages, in one command.
 *
 * mmdebstrap makes the root file system. It runs the packages' maintainer scripts, which expect to
 * be root. Started by root they are the root of a user namespace whose users are those of the image
 * store (image/open.h) and own nothing else; otherwise mmdebstrap makes such a namespace of the
 * caller's own range (/etc/subuid). The network is the machine's: apt needs it, and checks what it
 * loads by Debian's keys.
 *
 * It is one child with two pipes: the archive on its stdout, messages on its stderr. Both are read
 * until they end; the archive is hashed while it is written. mmdebstrap removes its scratch
 * directory; this file removes what is left when it was killed. The archive becomes the one layer
 * of an image, with a configuration and a manifest that are made here. From there on it is like an
 * imported image: the same checks, the same unpacker, the same publishing.
 */
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

#include "base/buf.h"
#include "base/fd.h"
#include "cell/idmap.h"
#include "image/incoming.h"
#include "image/verbs.h"

#define PROGRAM "mmdebstrap"
#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define SCRATCH "/var/tmp/caisson-build-"
#define CHUNK 65536
#define SUITE_DEFAULT "bookworm"
#define PACKAGES                                                                                   \
	"python3,python3-numpy,python3-pandas,python3-matplotlib,nodejs,git,curl,ca-certificates"
#define PACKAGES_MAX 2048
#define LAYER "layer.tar"

struct build_request {
	const char *suite;           /* "bookworm" */
	const char *mirror;          /* NULL: mmdebstrap's own choice */
	char packages[PACKAGES_MAX]; /* separated by commas */
};

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
	char tmp[sizeof("TMPDIR=") + sizeof(SCRATCH) + 16], include[PACKAGES_MAX + 16];
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
			ssize_t n = TEMP_FAILURE_RETRY(read(p[i].fd, chunk, sizeof(chunk)));

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
		(void)TEMP_FAILURE_RETRY(waitpid(b->pid, &status, 0));
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

/* The archive to @to, and its digest and size to @ret. The message of a failure has the last error
 * of mmdebstrap. */
static int build_tar(const struct build_request *w, int to, struct show *show, struct blob *ret,
		     struct err *e)
{
	struct builder b = { .request = w,
			     .ids = layer_ids(),
			     .go = { -1, -1 },
			     .out = { -1, -1 },
			     .log = { -1, -1 } };
	_hash_ struct hash h = { 0 };
	int r = start(&b, e);

	ret->size = 0;
	hash_begin(&h);
	if (r == 0)
		r = read_pipes(&b, to, &h, show, &ret->size, e);
	r = finish(&b, r, e);
	if (r == 0 && digest_end(&h, ret->digest) < 0)
		r = err_say(e, -EIO, "hash the archive");
	return r;
}

/* ---- the image ----------------------------------------------------------------------------- */

/* No value has a character that JSON would escape. */
static int write_config(const char *diff_id, struct buf *out)
{
	const struct platform here = platform_here();
	char created[IMAGE_TIME_MAX];

	return buf_printf(
		out,
		"{\"created\":\"%s\",\"architecture\":\"%s\",\"os\":\"%s\",\"config\":{\"Env\":"
		"[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"],"
		"\"Cmd\":[\"python3\"]},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
		image_time(time(NULL), created), here.arch, here.os, diff_id);
}

/* The names go into one argument of mmdebstrap, which accepts other things there, too. */
static int options_of(const struct image_options *o, struct build_request *ret, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.,:";
	const char *more = o->package ? o->package : "";

	if (more[strspn(more, letters)])
		return err_say(e, -EINVAL,
			       "--package: expected names of Debian packages, separated by commas");
	if ((size_t)snprintf(ret->packages, PACKAGES_MAX, PACKAGES "%s%s", *more ? "," : "",
			     more) >= PACKAGES_MAX)
		return err_say(e, -EINVAL, "--package: too many");
	ret->suite = o->suite ? o->suite : SUITE_DEFAULT;
	ret->mirror = o->mirror;
	if (ret->suite[strspn(ret->suite, letters)] || ret->suite[0] == '-')
		return err_say(e, -EINVAL,
			       "--suite: expected the name of a Debian release, such as bookworm");
	if (ret->mirror && strncmp(ret->mirror, "http", 4) != 0)
		return err_say(e, -EINVAL,
			       "--mirror: expected a URL, such as http://deb.debian.org/debian");
	return 0;
}

/* The documents of an image whose one layer is known. */
static int make_documents(struct incoming *in, struct err *e)
{
	int r;

	in->m.n_layers = 1;
	if ((r = write_config(in->m.layers[0].digest, &in->config)) < 0 ||
	    (r = digest_of(buf_str(&in->config), in->config.len, in->m.config.digest)) < 0)
		return err_set(e, r, "write the image's configuration");
	in->m.config.size = in->config.len;
	if ((r = manifest_write(&in->m, &in->manifest)) < 0 ||
	    (r = digest_of(buf_str(&in->manifest), in->manifest.len, in->ret->digest)) < 0)
		return err_set(e, r, "write the image's manifest");
	return manifest_parse(buf_str(&in->manifest), in->manifest.len, &in->m, e);
}

static int build_in(int dir, const struct build_request *request, struct incoming *in,
		    struct err *e)
{
	_fd_ int archive = openat(dir, LAYER, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (archive < 0)
		return err_set(e, -errno, "make the layer");
	if ((r = build_tar(request, archive, in->show, &in->m.layers[0], e)) < 0 ||
	    (r = make_documents(in, e)) < 0 || (r = incoming_check(in, e)) < 0)
		return r;
	/* The unpacker reads it, and must not be able to write it. */
	_fd_ int layer_fd = openat(dir, LAYER, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (layer_fd < 0)
		return err_set(e, -errno, "open the layer");
	r = incoming_unpack(in, &layer_fd, e);
	return r < 0 ? r : incoming_publish(in, e);
}

static int build(const struct image_options *o, const struct store *s, const struct ref *ref,
		 struct incoming_result *ret, struct err *e)
{
	char tree[STORE_NAME_MAX];
	struct build_request request;
	struct incoming in;
	struct show show;
	int r = options_of(o, &request, e);

	if (r < 0)
		return r;
	_fd_ int dir = store_tree_new(s, tree, e);

	if (dir < 0)
		return dir;
	show_begin(&show, o->json, o->quiet);
	incoming_init(&in, s, &show, ret);
	ref_format(ref, ret->ref);
	r = build_in(dir, &request, &in, e);
	incoming_free(&in);
	store_tree_drop(s, tree);
	return r;
}

int verb_build(const struct image_options *o, struct store *s, struct err *e)
{
	struct incoming_result result;
	struct ref ref;
	int r = ref_parse(o->n_rest ? o->rest[0] : IMAGE_BUILD_NAME, &ref, e);

	if (r == 0 && !ref.tag[0])
		r = err_say(e, -EINVAL, "a built image has a tag, not a digest");
	ref.digest[0] = '\0'; /* no registry answers for one */
	if (r < 0 || (r = image_change(o, s, e)) < 0 || (r = build(o, s, &ref, &result, e)) < 0)
		return r;
	image_done(o, &result);
	return 0;
}
