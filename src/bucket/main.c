/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - caisson-bucket: the only process that can reach the operator's buckets.
 *
 * Theory of operation. The front reads strangers' bytes, so it has neither keys nor a connection to
 * the outside. This program has both, and little else. The front alone sends it requests, on
 * descriptor 3; it ends with that socket. Content comes and goes on pipes.
 *
 * Each job is a process of its own, which works step by step and may wait: a slow job, or one that
 * the answer of a server crashes, harms no other. A job ends when nobody reads its answers any
 * more.
 *
 * A front in its jail cannot start a program. So the process that it started before, in the jail of
 * this program, only forks the worker, and another one when that is killed, and its jobs with it.
 * The pipes of those jobs end, which tells the front that they died; requests that were not begun
 * are still in the socket, for the next worker.
 *
 * The jail leaves descriptors that it is given, connections, its manifests, and the files that it
 * takes to find a server: names (/etc) and certificates. It has its own user (as root), no
 * capability, no program; Landlock lets it read below the directories of the resolver and the TLS
 * library, and write below its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/supervise.h"
#include "bucket/bucket.h"
#include "bucket_filter.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "s3/sign.h"

#define JAIL_USER "caisson-bucket"
#define JAIL_ID 0x6ffffffau /* beside the others': see front/support/jail.c */
#define EXIT_FAILED 125
#define FDS_MAX 3u
#define DEATHS_MAX 100u
#define AGAIN_MS 100u
#define PLACES_MAX 64u
#define CA_MAX (4u << 20)

/* ---- the configuration --------------------------------------------------------------------- */

struct bucket_config {
	struct s3_site site;
	struct s3_creds creds;
	struct buf ca; /* PEM; empty: the machine's */
	struct {
		char name[BUCKET_PLACE_MAX + 1];
		struct s3_place place;
	} places[PLACES_MAX];
	size_t n_places;
};

/* The options that the front gives. The front has checked them; this program reads the files that
 * they name. */
struct words {
	const char *endpoint, *region, *style, *ca, *credentials, *profile;
	uint64_t keys;                      /* a descriptor; 0: none */
	const char *places[PLACES_MAX + 1]; /* NAME=s3://BUCKET/PREFIX */
};

#define AT(member) offsetof(struct words, member)

static const struct option_row rows[] = {
	{ "--endpoint", NULL, "URL", OPTION_STRING, AT(endpoint) },
	{ "--region", NULL, "REGION", OPTION_STRING, AT(region) },
	{ "--style", NULL, "STYLE", OPTION_STRING, AT(style) },
	{ "--ca", NULL, "FILE", OPTION_STRING, AT(ca) },
	{ "--credentials", NULL, "FILE", OPTION_STRING, AT(credentials) },
	{ "--keys", NULL, "FD", OPTION_NUMBER, AT(keys), .min = 3, .max = 1024 },
	{ "--profile", NULL, "NAME", OPTION_STRING, AT(profile) },
	{ "--place", NULL, "NAME=PLACE", OPTION_PAIRS, AT(places), .max = PLACES_MAX },
};

static int add_place(struct bucket_config *c, const char *text, struct err *e)
{
	size_t len = strcspn(text, "=");

	if (len > BUCKET_PLACE_MAX)
		return err_say(e, -EINVAL, "--place: the name in '%.64s' is too long", text);
	memcpy(c->places[c->n_places].name, text, len);
	int r = s3_place_parse(text + len + 1, &c->places[c->n_places].place, e);

	c->n_places++;
	return r < 0 ? err_wrap(e, "place %.*s", (int)len, text) : 0;
}

static int read_ca(const char *path, struct buf *ret, struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(ret, CA_MAX);
	int r = fd < 0 ? -errno : fd_read_buf(fd, ret);

	if (r == 0 && ret->len == 0)
		r = -ENODATA;
	return r < 0 ? err_set(e, r, "--s3-ca %s", path) : 0;
}

/* A file that was named, or else what stood in the environment. */
static int read_keys(const struct words *w, struct s3_creds *ret, struct err *e)
{
	if (w->credentials) {
		int r = s3_creds_file(w->credentials, w->profile, ret, e);

		return r < 0 ? err_wrap(e, "--s3-credentials %s", w->credentials) : 0;
	}
	if (w->keys) {
		int r = s3_creds_fd((int)w->keys, NULL, ret, e);

		(void)close((int)w->keys);
		return r < 0 ? err_wrap(e, "keys of the environment") : 0;
	}
	return err_say(e, -ENOENT,
		       "no keys for the buckets: name a file with --s3-credentials, or set "
		       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
}

static int parse(int argc, char **argv, struct bucket_config *ret, struct err *e)
{
	struct words w = { 0 };
	struct options p = { .rows = rows, .n_rows = ARRAY_SIZE(rows), .target = &w };
	enum s3_style style;
	int r = options_arguments(&p, argc, argv, e);

	for (size_t i = 0; r == 0 && w.places[i]; i++)
		r = add_place(ret, w.places[i], e);
	style = !w.style                     ? S3_STYLE_AUTO :
		strcmp(w.style, "path") == 0 ? S3_STYLE_PATH :
					       S3_STYLE_VIRTUAL;
	if (r == 0 && s3_site_parse(w.endpoint, w.region, style, &ret->site, e) < 0)
		r = err_wrap(e, "--s3-endpoint");
	if (r == 0 && w.ca)
		r = read_ca(w.ca, &ret->ca, e);
	return r == 0 ? read_keys(&w, &ret->creds, e) : r;
}

static const struct s3_place *find_place(const struct bucket_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_places; i++)
		if (strcmp(c->places[i].name, name) == 0)
			return &c->places[i].place;
	return NULL;
}

/* ---- the jail ------------------------------------------------------------------------------ */

static int enter_jail(struct err *e)
{
	const struct landlock_dir own = { BUCKET_DIR_FD,
					  LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE |
						  LANDLOCK_READ_DIR | LANDLOCK_REMOVE_FILE |
						  LANDLOCK_MAKE_REG | LANDLOCK_TRUNCATE };
	struct power_user user;

	if (power_user(JAIL_USER, JAIL_ID, &user, e) < 0)
		return e->code;
	if (user.uid && fchown(BUCKET_DIR_FD, user.uid, user.gid) < 0)
		return err_set(e, -errno, "hand over the directory of manifests");
	if (power_leave(&user, e) < 0 || power_settle(e) < 0)
		return e->code;
	return power_confine_client(&own, BUCKET_FILTER, ARRAY_SIZE(BUCKET_FILTER), e);
}

/* ---- a job --------------------------------------------------------------------------------- */

static void report(int fd, struct bucket_reply *r)
{
	r->version = BUCKET_VERSION;
	(void)fd_write_all(fd, r, sizeof(*r));
}

static void refuse(int answer, int code, const char *why)
{
	struct bucket_reply r = { .say = BUCKET_DONE, .code = code };

	(void)snprintf(r.msg, sizeof(r.msg), "%s", why);
	report(answer, &r);
}

/* Blocking, to its end; fills j->r. 0 or a negative errno with a message. */
static int job_run(struct job *j, struct err *e)
{
	static const struct {
		int (*fn)(struct job *j, struct err *e);
		int fds;
		bool work;
	} ops[BUCKET_OP_MAX_] = {
		[BUCKET_PUT] = { job_put, 1, false },
		[BUCKET_LOOK] = { job_look, 0, true },
		[BUCKET_PULL] = { job_pull, 1, true },
		[BUCKET_PUSH] = { job_push, 2, true },
		[BUCKET_KEEP] = { manifest_keep, 0, true },
		[BUCKET_FORGET] = { manifest_forget, 0, true },
	};
	uint32_t op = j->q->op;

	if (op >= BUCKET_OP_MAX_ || !ops[op].fn)
		return err_say(e, -EINVAL, "unknown request");
	for (int i = 0; i < ops[op].fds; i++)
		if (j->fds[i] < 0)
			return err_say(e, -EBADF, "a descriptor is missing");
	if (ops[op].work && (strlen(j->q->work) != BUCKET_WORK_LEN ||
			     strspn(j->q->work, "0123456789abcdef") != BUCKET_WORK_LEN))
		return err_say(e, -EINVAL, "invalid key of a workspace");
	return ops[op].fn(j, e);
}

/* The child: until its end. */
static void work(const struct bucket_config *c, const struct bucket_req *q, int *fds)
{
	static struct job j;
	struct err e = { 0 };

	j = (struct job){ .q = q,
			  .answer = fds[0],
			  .fds = { fds[1], fds[2] },
			  .dir = BUCKET_DIR_FD,
			  .place = find_place(c, q->place) };
	j.client.site = c->site;
	j.client.creds = c->creds;
	j.client.ca = c->ca.len ? &c->ca : NULL;
	j.client.cancel_fd = j.answer;
	int r = j.place ? s3_client_open(&j.client, &e) :
			  err_say(&e, -ENOENT, "no place of this name is configured");

	if (r == 0)
		r = job_run(&j, &e);
	j.r.say = BUCKET_DONE;
	j.r.code = r < 0 ? r : 0;
	if (r < 0)
		(void)snprintf(j.r.msg, sizeof(j.r.msg), "%.479s", e.msg);
	report(j.answer, &j.r);
	_exit(r < 0);
}

static size_t live; /* jobs */

static void reap(void)
{
	while (live > 0 && waitpid(-1, NULL, WNOHANG) > 0)
		live--;
}

static void begin(const struct bucket_config *c, struct bucket_req *q, int *fds)
{
	reap();
	if (live >= BUCKET_JOBS_MAX) {
		refuse(fds[0], -EBUSY, "too many transfers at once; try again");
		return;
	}
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		/* A job without its worker would not be counted. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(1);
		(void)close(BUCKET_FD);
		work(c, q, fds);
	}
	if (pid < 0)
		refuse(fds[0], -errno, "no process can be started");
	else
		live++;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* The front may have been taken over: end every text. */
static void end_texts(struct bucket_req *q)
{
	q->place[sizeof(q->place) - 1] = q->work[sizeof(q->work) - 1] = '\0';
	q->key[sizeof(q->key) - 1] = q->type[sizeof(q->type) - 1] = '\0';
}

/* False: the front is gone, or sent a malformed request. */
static bool receive(const struct bucket_config *c)
{
	static struct bucket_req q;
	int fds[FDS_MAX] = { -1, -1, -1 };
	size_t n_fds = FDS_MAX;
	ssize_t n = fd_recv(BUCKET_FD, &q, sizeof(q), fds, &n_fds);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	bool good = n == (ssize_t)sizeof(q) && q.version == BUCKET_VERSION && n_fds > 0;

	if (good) {
		end_texts(&q);
		begin(c, &q, fds);
	}
	fd_close_all(fds, n > 0 ? n_fds : 0);
	return good;
}

static int serve(const struct bucket_config *c)
{
	struct pollfd p = { .fd = BUCKET_FD, .events = POLLIN };

	for (;;) {
		int n = poll(&p, 1, live > 0 ? 1000 : -1);

		if (n < 0 && errno != EINTR)
			return EXIT_FAILED;
		reap();
		if (n > 0 && !receive(c))
			return 0;
	}
}

/* ---- the program --------------------------------------------------------------------------- */

static int work_for_life(void *arg, uint32_t life)
{
	(void)life;
	return serve(arg);
}

static int supervise_all(struct bucket_config *c)
{
	const struct bucket_reply ready = { .version = BUCKET_VERSION, .say = BUCKET_READY };
	const struct supervise workers = { .work = work_for_life,
					   .arg = c,
					   .name = "caisson-bucket",
					   .lives_max = DEATHS_MAX,
					   .failed = EXIT_FAILED,
					   .bury_all = true,
					   .pause_ms = AGAIN_MS };

	if (fd_send(BUCKET_FD, &ready, sizeof(ready), NULL, 0) < 0)
		return EXIT_FAILED;
	return supervise(&workers);
}

int main(int argc, char **argv)
{
	static struct bucket_config c;
	struct stat st;
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the group; the socket tells the end */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)umask(077);
	if (fstat(BUCKET_DIR_FD, &st) < 0 || fcntl(BUCKET_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
		(void)fprintf(stderr, "caisson-bucket: started by caisson serve, not by hand\n");
		return 2;
	}
	int r = parse(argc, argv, &c, &e);

	if (r == 0)
		r = curl_global_init(CURL_GLOBAL_DEFAULT) ?
			    err_say(&e, -ENOMEM, "libcurl does not start") :
			    enter_jail(&e);
	if (r < 0) {
		(void)fprintf(stderr, "caisson-bucket: %s\n", e.msg);
		return EXIT_FAILED;
	}
	return supervise_all(&c);
}
