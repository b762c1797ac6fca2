/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_opener.c - caisson-image-opener: opens images of the store for processes that make cells.
 *
 * Theory of operation. An image is a manifest, a configuration and directories, all of them made by
 * strangers. The front reads strangers' bytes and may open no file; the command is static, and
 * parses no JSON. So this process stands between them and the store, and can read the store and
 * nothing else: own user (as root) with the one capability to read files of others, since the store
 * belongs to the user who pulls; the store as its root; Landlock, with reading below it as the only
 * right; and a filter without sockets, programs and processes (policy/image-opener.policy). It
 * receives requests on descriptor 3, replies with descriptors, keeps none of them, and ends with
 * its socket.
 *
 * usage: caisson-image-opener [STORE]
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "image/image_store.h"
#include "image/open.h"
#include "image_opener_filter.h"
#include "wire/image_opener.h"
#include "wire/warden.h"

#define IMAGE_OPENER_ID 0x6ffffffcu /* just below the package store's */
#define EXIT_ANSWERED 3
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define PASSWD_MAX (1u << 20)
#define ID_MAX 65535u

_Static_assert(IMAGE_LAYERS_MAX <= CELL_LAYERS_MAX, "every image of the store fits into a cell");
_Static_assert(IMAGE_ID_BASE == CELL_LAYER_IDS, "the owner of the files of layers");
_Static_assert(IMAGE_REF_MAX <= IMAGE_OPENER_REF_MAX, "a reference fits into a reply");

/* ---- the jail ------------------------------------------------------------------------------ */

static int leave_privilege(struct err *e)
{
	const uint64_t read_all = UINT64_C(1) << CAP_DAC_READ_SEARCH;
	int r = 0;

	if (geteuid() != 0) {
		r = caps_drop();
	} else if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || (r = caps_bound(read_all)) < 0 ||
		   setgroups(0, NULL) < 0 ||
		   setresgid(IMAGE_OPENER_ID, IMAGE_OPENER_ID, IMAGE_OPENER_ID) < 0 ||
		   setresuid(IMAGE_OPENER_ID, IMAGE_OPENER_ID, IMAGE_OPENER_ID) < 0) {
		r = r < 0 ? r : -errno;
	} else {
		r = caps_keep(read_all, 0);
	}
	return r < 0 ? err_set(e, r, "become a user without rights") : 0;
}

/* Libraries that read files at their first use do that now. */
static int prime_libraries(struct err *e)
{
	size_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return err_set(e, -errno, "getrandom");
	json_object_seed(seed | 1);
	char warm[IMAGE_DIGEST_MAX];

	return digest_of("", 0, warm) < 0 ? err_say(e, -ENOMEM, "no SHA-256") : 0;
}

/* @store: -1: no image store, and so nothing to read. */
static int enter_jail(int store, struct err *e)
{
	const struct landlock_dir dir = { store, LANDLOCK_READ_FILE | LANDLOCK_READ_DIR };

	if (prime_libraries(e) < 0 || (store >= 0 && power_root(store, e) < 0) ||
	    leave_privilege(e) < 0 || power_settle(e) < 0)
		return e->code;
	return power_confine(&dir, store >= 0 ? 1 : 0, IMAGE_OPENER_FILTER,
			     ARRAY_SIZE(IMAGE_OPENER_FILTER), e);
}

/* ---- names in layers, without mounting them ------------------------------------------------ */

/*
 * The uppermost layer that has a name decides, also by a whiteout, which removes the name. A link
 * that leads into another layer counts as the program that it stands for. No link of a layer leads
 * out of it. The result is a hint for messages and defaults: strangers made the layers, and the
 * cell decides.
 */
static int open_in(int layer, const char *path, int flags)
{
	return fd_openat2(layer, path, flags,
			  RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

/* 1: the file is there; 0: this layer has a whiteout for it; -1: neither. */
static int look(int layer, const char *path)
{
	struct stat st;
	_fd_ int fd = open_in(layer, path, O_PATH | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISCHR(st.st_mode))
		return 0;
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 1 : -1;
}

static bool is_at(const int *layers, size_t n, const char *full)
{
	int there = -1;

	for (size_t i = 0; i < n && there < 0; i++)
		there = look(layers[i], full);
	return there > 0;
}

/* Is there a program @name in a directory of @path ("/usr/bin:/bin")? An absolute name is looked
 * for there. */
static bool has_program(const int *layers, size_t n, const char *path, const char *name)
{
	char full[512];

	if (name[0] == '/')
		return is_at(layers, n, name);
	for (; *path; path += *path == ':') {
		size_t len = strcspn(path, ":");

		if (len + 1 + strlen(name) < sizeof(full)) {
			memcpy(full, path, len);
			full[len] = '/';
			memcpy(full + len + 1, name, strlen(name) + 1);
			if (is_at(layers, n, full))
				return true;
		}
		path += len;
	}
	return false;
}

/* The uppermost file of that name. Its text is the caller's to free; NULL: none that can
 * be read. */
static char *read_file(const int *layers, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		struct stat st;
		_fd_ int fd = open_in(layers[i], path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

		if (fd < 0)
			continue;
		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			return NULL;
		return fd_read_whole(fd, PASSWD_MAX, NULL);
	}
	return NULL;
}

/* Field @k of a line "a:b:c", as a number that an image may have. */
static bool number_at(const char *line, size_t end, unsigned int k, uint32_t *ret)
{
	const char *p = line, *stop = line + end;
	char digits[12];
	uint64_t v;

	while (k > 0 && p < stop)
		if (*p++ == ':')
			k--;
	size_t len = k == 0 ? strcspn(p, ":\n") : 0;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, p, len);
	digits[len] = '\0';
	if (num_parse_u64(digits, 0, ID_MAX, &v, NULL) < 0)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* The line of /etc/passwd or /etc/group whose name is @name. */
static const char *find_line(const char *text, const char *name, size_t len, size_t *ret_end)
{
	while (text && *text) {
		size_t end = strcspn(text, "\n");

		if (end > len && text[len] == ':' && strncmp(text, name, len) == 0) {
			*ret_end = end;
			return text;
		}
		text += end + (text[end] == '\n');
	}
	return NULL;
}

static bool is_number(const char *s, size_t len, uint32_t *ret)
{
	return len > 0 && strspn(s, "0123456789") >= len && number_at(s, len, 0, ret);
}

/* The numbers of "name", "1000", "name:group", "1000:1000"; "": 0. A name that the image does not
 * have is an error. */
static int find_user(const int *layers, size_t n, const char *user, uint32_t *uid, uint32_t *gid,
		     struct err *e)
{
	size_t len = strcspn(user, ":"), end = 0;
	const char *group = user[len] == ':' ? user + len + 1 : "";
	_mem_ char *users = NULL;
	_mem_ char *groups = NULL;

	*uid = *gid = 0;
	if (len > 0 && !is_number(user, len, uid)) {
		users = read_file(layers, n, "etc/passwd");
		const char *line = find_line(users, user, len, &end);

		if (!line || !number_at(line, end, 2, uid) || !number_at(line, end, 3, gid))
			return err_say(e, -EINVAL,
				       "the image runs as '%.64s', but has no such user", user);
	} else {
		*gid = *uid;
	}
	if (*group && !is_number(group, strlen(group), gid)) {
		groups = read_file(layers, n, "etc/group");
		const char *line = find_line(groups, group, strlen(group), &end);

		if (!line || !number_at(line, end, 2, gid))
			return err_say(e, -EINVAL,
				       "the image runs as '%.64s', but has no such group", user);
	}
	return 0;
}

/* ---- one image ----------------------------------------------------------------------------- */

static int put(struct image_opener_reply *r, const char *s)
{
	size_t len = strlen(s) + 1;

	if (len > sizeof(r->text) - r->text_len)
		return -EMSGSIZE;
	memcpy(r->text + r->text_len, s, len);
	r->text_len += (uint32_t)len;
	return 0;
}

static int put_all(struct image_opener_reply *r, char *const *list, uint32_t *n)
{
	int code = 0;

	for (; code == 0 && *list; list++, ++*n)
		code = put(r, *list);
	return code;
}

static const char *path_of(const struct image_config *c)
{
	for (char **v = c->env; *v; v++)
		if (strncmp(*v, "PATH=", 5) == 0)
			return *v + 5;
	return PATH_DEFAULT;
}

static int describe(const struct image *im, const struct image_opener_req *q,
		    struct image_opener_reply *r, struct err *e)
{
	const struct image_config *c = &im->config;

	(void)snprintf(r->ref, sizeof(r->ref), "%s", im->ref);
	(void)snprintf(r->digest, sizeof(r->digest), "%s", im->digest);
	r->n_layers = (uint32_t)im->n_layers;
	if (put(r, c->workdir) < 0 || put_all(r, c->env, &r->n_env) < 0 ||
	    put_all(r, c->entrypoint, &r->n_entrypoint) < 0 || put_all(r, c->cmd, &r->n_cmd) < 0)
		return err_say(e, -EMSGSIZE,
			       "%s: its environment and command are larger than %u KiB", im->ref,
			       IMAGE_OPENER_TEXT_MAX / 1024);
	for (uint32_t i = 0; i < q->n_programs && i < IMAGE_OPENER_PROGRAMS_MAX; i++)
		if (has_program(im->layers, im->n_layers, path_of(c), q->programs[i]))
			r->found |= 1u << i;
	return find_user(im->layers, im->n_layers, c->user, &r->uid, &r->gid, e);
}

static int lend(int store, struct image_opener_req *q, struct image_opener_reply *r)
{
	int fds[1 + IMAGE_LAYERS_MAX];
	struct image im;
	struct err e = { 0 };

	q->ref[sizeof(q->ref) - 1] = '\0';
	for (size_t i = 0; i < IMAGE_OPENER_PROGRAMS_MAX; i++)
		q->programs[i][sizeof(q->programs[i]) - 1] = '\0';
	r->code = image_open(store, q->ref, &im, &e);
	if (r->code < 0) {
		(void)snprintf(r->msg, sizeof(r->msg), "%s", e.msg);
		return fd_send(IMAGE_OPENER_FD, r, sizeof(*r), NULL, 0);
	}
	r->code = describe(&im, q, r, &e);
	(void)snprintf(r->msg, sizeof(r->msg), "%s", r->code < 0 ? e.msg : "");
	fds[0] = im.lease;
	memcpy(fds + 1, im.layers, im.n_layers * sizeof(int));
	int sent = fd_send(IMAGE_OPENER_FD, r, sizeof(*r), fds, r->code < 0 ? 0 : 1 + im.n_layers);

	image_close(&im);
	return sent;
}

/* False: the peer is gone, or has another version. */
static bool answer(int store, const struct err *why, struct image_opener_req *q)
{
	static struct image_opener_reply r;

	memset(&r, 0, sizeof(r));
	r.version = IMAGE_OPENER_VERSION;
	if (store >= 0)
		return lend(store, q, &r) == 0;
	r.code = why->code;
	(void)snprintf(r.msg, sizeof(r.msg), "%s", why->msg);
	return fd_send(IMAGE_OPENER_FD, &r, sizeof(r), NULL, 0) == 0;
}

/* A store in which nothing was removed yet may lack its lock file, which the jail cannot make. */
static void make_lock(int dir)
{
	_store_ struct store s = STORE_NONE;

	if (dir >= 0 && store_open_at(&s, dir, NULL) == 0)
		fd_close(store_lock(&s, false, NULL));
}

/* One request, or all until the peer is gone, which is 0. */
static int serve(int store, const struct err *why, bool once)
{
	do {
		static struct image_opener_req q;
		size_t n_fds = 0;

		ssize_t n = fd_recv(IMAGE_OPENER_FD, &q, sizeof(q), NULL, &n_fds);

		if (n == 0)
			return 0;
		if (n != (ssize_t)sizeof(q) || q.version != IMAGE_OPENER_VERSION)
			return 1;
		if (!answer(store, why, &q))
			return 1;
	} while (!once);
	return EXIT_ANSWERED;
}

/* Half a jail never serves. */
static int serve_in_jail(int store, const struct err *why, bool once)
{
	struct err e = { 0 };

	if (enter_jail(store, &e) == 0)
		return serve(store, why, once);
	(void)fprintf(stderr, "caisson-image-opener: %s\n", e.msg);
	return 1;
}

/* By a child in the jail. EXIT_ANSWERED, or the exit status. */
static int answer_once(const struct err *why)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(serve_in_jail(-1, why, true));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

/*
 * While there is no store (nothing was pulled yet), each request looks for it again. The process
 * that can still open the store is not in the jail, so it reads no byte of a request.
 */
static int run(const char *path)
{
	struct err e = { 0 };
	_fd_ int store = image_store_open(path, &e);

	while (store < 0) {
		struct pollfd asked = { .fd = IMAGE_OPENER_FD, .events = POLLIN };
		int r;

		if (poll(&asked, 1, -1) != 1)
			continue; /* a signal */
		e = (struct err){ 0 };
		store = image_store_open(path, &e);
		if (store < 0 && (r = answer_once(&e)) != EXIT_ANSWERED)
			return r;
	}
	make_lock(store);
	return serve_in_jail(store, &e, false);
}

int main(int argc, char **argv)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the group; the socket tells the end */
	(void)signal(SIGTERM, SIG_IGN);
	if (argc > 2 || fcntl(IMAGE_OPENER_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "caisson-image-opener: started by caisson, not by hand\n");
		return 2;
	}
	return run(argc > 1 ? argv[1] : NULL);
}
