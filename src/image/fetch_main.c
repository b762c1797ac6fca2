/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_main.c - caisson-image-fetch: the only process that talks to a registry.
 *
 * Theory of operation. caisson-image changes the store, with the rights of the user who pulls. The
 * answers of a registry are a stranger's, so another process reads them: this one. It finds a
 * socket on descriptor 3, and files for the manifest and the configuration on 4 and 5. It is told
 * the image and the credentials for its registry, parses the documents, and loads layers into files
 * that it is given. It hashes all that it loads, for a message that is right; what the store has
 * under which name is decided without it (fetch.c).
 *
 * The jail leaves it its descriptors, connections, and the files that it takes to find a server:
 * names and certificates. It has its own user (as root), no capability, and no other file; it
 * starts no program and no process. Of credentials it holds those for this one registry.
 *
 * usage: caisson-image-fetch [--insecure] [--ca=FILE]
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "cell/power.h"
#include "image/documents.h"
#include "image/image_store.h"
#include "image/registry.h"
#include "image/transfer.h"
#include "image_fetch_filter.h"
#include "wire/image_fetch.h"

#define JAIL_USER "caisson-image-fetch"
#define JAIL_ID 0x6ffffff9u /* beside the others': see front/support/jail.c */
#define CA_MAX (4u << 20)
#define STEP_MS 100

struct words {
	const char *ca;
	bool insecure;
};

#define AT(member) offsetof(struct words, member)

static const struct option_row rows[] = {
	{ "--ca", NULL, "FILE", OPTION_STRING, AT(ca) },
	{ "--insecure", NULL, NULL, OPTION_FLAG, AT(insecure) },
};

struct loading {
	struct transfer transfer; /* r NULL: it does not run */
	uint64_t had, told;
};

struct fetcher {
	struct registry registry;
	struct registry_options options;
	struct buf ca;
	struct manifest manifest;
	struct loading *layers;
	uint64_t told_ns; /* when it was last said how far they are */
};

/* ---- replies ------------------------------------------------------------------------------- */

/* False: nobody hears it. */
static bool say(struct image_fetch_reply *r, enum image_fetch_say what)
{
	r->version = IMAGE_FETCH_VERSION;
	r->say = what;
	return fd_send(IMAGE_FETCH_FD, r, sizeof(*r), NULL, 0) == 0;
}

static int fail(const struct err *e, size_t layer)
{
	static struct image_fetch_reply r;

	r.code = e->code;
	r.layer = (uint32_t)layer;
	(void)snprintf(r.msg, sizeof(r.msg), "%s", e->msg);
	(void)say(&r, IMAGE_FETCH_FAILED);
	return 1;
}

#define NO_LAYER UINT32_MAX

/* ---- documents ----------------------------------------------------------------------------- */

/* A document into @ret. @want: its digest and size, or NULL; @type: its Content-Type, or NULL. */
static int get(struct fetcher *f, const char *kind, const char *what, const struct blob *want,
	       struct buf *ret, char *digest, char type[128], struct err *e)
{
	struct transfer t = { .kind = kind,
			      .what = what,
			      .digest = want ? want->digest : NULL,
			      .size = want ? want->size : 0,
			      .fd = -1 };
	int r;

	transfer_begin(&t, &f->registry);
	r = transfer_wait(&t);
	if (r < 0) {
		*e = t.err;
	} else {
		buf_clear(ret);
		r = buf_append(ret, buf_str(&t.body), t.body.len);
		if (r < 0)
			(void)err_set(e, r, "keep a document");
		(void)snprintf(digest, IMAGE_DIGEST_MAX, "%s", t.got);
		if (type)
			memcpy(type, t.type, sizeof(t.type));
	}
	transfer_end(&t);
	return r;
}

static int get_manifest(struct fetcher *f, struct buf *text, char *digest, struct err *e)
{
	const struct ref *ref = &f->registry.ref;
	const struct platform here = platform_here();
	char type[128];
	struct blob one;
	int r = get(f, "manifests", ref->digest[0] ? ref->digest : ref->tag, NULL, text, digest,
		    type, e);

	if (r < 0)
		return r;
	if (ref->digest[0] && strcmp(ref->digest, digest) != 0)
		return err_say(e, -EBADMSG, "the registry's manifest is %s, not the requested %s",
			       digest, ref->digest);
	r = manifest_kind(buf_str(text), text->len, type, e);
	if (r == MANIFEST_INDEX) {
		r = index_choose(buf_str(text), text->len, &here, &one, e);
		if (r == 0)
			r = get(f, "manifests", one.digest, &one, text, digest, NULL, e);
	}
	return r < 0 ? r : manifest_parse(buf_str(text), text->len, &f->manifest, e);
}

static int put(int fd, const struct buf *b, struct err *e)
{
	int r = fd_write_all(fd, buf_str(b), b->len);

	return r < 0 ? err_set(e, r, "hand over a document") : 0;
}

static void describe(const struct manifest *m, const struct config *c, struct image_fetch_reply *r)
{
	memcpy(r->config, m->config.digest, sizeof(r->config));
	r->config_size = m->config.size;
	r->n_layers = (uint32_t)m->n_layers;
	for (size_t i = 0; i < m->n_layers; i++) {
		memcpy(r->layers[i].digest, m->layers[i].digest, sizeof(r->layers[i].digest));
		memcpy(r->layers[i].diff_id, c->diff_ids[i], sizeof(r->layers[i].diff_id));
		r->layers[i].size = m->layers[i].size;
	}
}

static int find_image(struct fetcher *f, struct image_fetch_reply *ret, struct err *e)
{
	_buf_ struct buf manifest = BUF_INIT(MANIFEST_BYTES_MAX + 1),
			 text = BUF_INIT(MANIFEST_BYTES_MAX + 1);
	const struct blob *config = &f->manifest.config;
	char digest[IMAGE_DIGEST_MAX];
	struct config c = { 0 };
	int r = get_manifest(f, &manifest, ret->digest, e);

	if (r == 0)
		r = get(f, "blobs", config->digest, config, &text, digest, NULL, e);
	if (r == 0)
		r = config_parse(buf_str(&text), text.len, &c, e);
	if (r == 0) {
		r = documents_fit(&f->manifest, &c, e);
		describe(&f->manifest, &c, ret);
		config_free(&c);
	}
	if (r == 0)
		r = put(IMAGE_FETCH_MANIFEST_FD, &manifest, e);
	return r == 0 ? put(IMAGE_FETCH_CONFIG_FD, &text, e) : r;
}

/* ---- layers -------------------------------------------------------------------------------- */

static void begin_layer(struct fetcher *f, size_t i, int file)
{
	const struct blob *b = &f->manifest.layers[i];
	struct loading *l = &f->layers[i];

	l->transfer = (struct transfer){
		.kind = "blobs", .what = b->digest, .digest = b->digest, .size = b->size, .fd = file
	};
	transfer_begin(&l->transfer, &f->registry);
	l->had = l->told = l->transfer.have;
}

static bool tell(struct loading *l, size_t i, enum image_fetch_say what)
{
	static struct image_fetch_reply r;

	r.layer = (uint32_t)i;
	r.have = l->told = l->transfer.have;
	r.had = l->had;
	return say(&r, what);
}

/* Tell which are over, and now and then how far the others are. 1: one has failed, which was said;
 * or nobody hears. */
static int tell_all(struct fetcher *f)
{
	uint64_t now = clock_now_ns();
	bool due = now - f->told_ns >= STEP_MS * CLOCK_NS_PER_MS;

	if (due)
		f->told_ns = now;
	for (size_t i = 0; i < f->manifest.n_layers; i++) {
		struct loading *l = &f->layers[i];
		struct transfer *t = &l->transfer;

		if (!t->r)
			continue;
		if (t->err.code)
			return fail(&t->err, i);
		bool over = transfer_over(t);

		if ((over || (due && t->have != l->told)) &&
		    !tell(l, i, over ? IMAGE_FETCH_LOADED : IMAGE_FETCH_MOVED))
			return 1;
		if (over) {
			transfer_end(t);
			t->fd = fd_close(t->fd);
			t->r = NULL;
		}
	}
	return 0;
}

/* One request. 0: go on; 1: it is malformed; -1: nobody asks any more. */
static int take_request(struct fetcher *f)
{
	static struct image_fetch_req q;
	int file = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(IMAGE_FETCH_FD, &q, sizeof(q), &file, &n_fds);

	if (n <= 0)
		return n == -EINTR ? 0 : -1;
	if (n != (ssize_t)sizeof(q) || q.version != IMAGE_FETCH_VERSION ||
	    q.op != IMAGE_FETCH_LOAD || n_fds != 1 || q.layer >= f->manifest.n_layers ||
	    f->layers[q.layer].transfer.r)
		return 1;
	begin_layer(f, q.layer, file);
	return 0;
}

static int load_layers(struct fetcher *f)
{
	struct transfer *loads[IMAGE_LAYERS_MAX];
	int r = 0;

	while (r == 0) {
		struct curl_waitfd asked = { IMAGE_FETCH_FD, CURL_WAIT_POLLIN, 0 };
		size_t n = 0;

		for (size_t i = 0; i < f->manifest.n_layers; i++)
			if (f->layers[i].transfer.r)
				loads[n++] = &f->layers[i].transfer;
		transfers_step(&f->registry, loads, n, &asked, 1, STEP_MS);
		r = tell_all(f);
		if (r == 0 && asked.revents && (r = take_request(f)) == 0)
			r = tell_all(f); /* the file may be complete already */
	}
	return r < 0 ? 0 : 1;
}

/* ---- the program --------------------------------------------------------------------------- */

static int take_image(struct fetcher *f, struct err *e)
{
	static struct image_fetch_req q;
	struct creds creds = { 0 };
	size_t no_fds = 0;
	struct ref ref;

	if (fd_recv(IMAGE_FETCH_FD, &q, sizeof(q), NULL, &no_fds) != (ssize_t)sizeof(q) ||
	    q.version != IMAGE_FETCH_VERSION || q.op != IMAGE_FETCH_BEGIN)
		return err_say(e, -EPROTO,
			       "caisson-image and caisson-image-fetch are of different versions; "
			       "reinstall both");
	q.ref[sizeof(q.ref) - 1] = '\0';
	(void)snprintf(creds.user, sizeof(creds.user), "%.255s", q.user);
	(void)snprintf(creds.password, sizeof(creds.password), "%.4095s", q.password);
	explicit_bzero(&q.password, sizeof(q.password));
	int r = ref_parse(q.ref, &ref, e);

	if (r == 0)
		r = registry_open(&f->registry, &ref, &creds, &f->options, e);
	explicit_bzero(&creds, sizeof(creds));
	return r;
}

static int serve(struct fetcher *f)
{
	static struct image_fetch_reply found;
	struct err e = { 0 };

	if (take_image(f, &e) < 0 || find_image(f, &found, &e) < 0)
		return fail(&e, NO_LAYER);
	f->layers = calloc(f->manifest.n_layers, sizeof(*f->layers));
	if (!f->layers) {
		(void)err_set(&e, -ENOMEM, "load an image");
		return fail(&e, NO_LAYER);
	}
	return say(&found, IMAGE_FETCH_FOUND) ? load_layers(f) : 0;
}

static int read_ca(const char *path, struct buf *ret, struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(ret, CA_MAX);
	int r = fd < 0 ? -errno : fd_read_buf(fd, ret);

	if (r == 0 && ret->len == 0)
		r = -ENODATA;
	return r < 0 ? err_set(e, r, "--ca %s", path) : 0;
}

static int prepare(int argc, char **argv, struct fetcher *f, struct err *e)
{
	struct words w = { 0 };
	struct options p = { .rows = rows, .n_rows = ARRAY_SIZE(rows), .target = &w };
	int r = options_arguments(&p, argc, argv, e);

	if (r == 0 && w.ca)
		r = read_ca(w.ca, &f->ca, e);
	f->options =
		(struct registry_options){ .insecure = w.insecure, .ca = w.ca ? &f->ca : NULL };
	return r;
}

/* Libraries that read files at their first use do that now. */
static int prime_libraries(struct err *e)
{
	char warm[IMAGE_DIGEST_MAX];
	size_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return err_set(e, -errno, "getrandom");
	json_object_seed(seed | 1);
	if (digest_of("", 0, warm) < 0)
		return err_say(e, -ENOMEM, "no SHA-256");
	return curl_global_init(CURL_GLOBAL_DEFAULT) ?
		       err_say(e, -ENOMEM, "libcurl does not start") :
		       0;
}

static int enter_jail(pid_t parent, struct err *e)
{
	struct power_user user;

	if (power_user(JAIL_USER, JAIL_ID, &user, e) < 0 || power_leave(&user, e) < 0 ||
	    power_settle(e) < 0)
		return e->code;
	/* After the change of user, which resets it: nothing writes to a layer's file when the
	 * process that gave it away is gone. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return err_say(e, -ESRCH, "caisson-image has ended");
	return power_confine_client(NULL, IMAGE_FETCH_FILTER, ARRAY_SIZE(IMAGE_FETCH_FILTER), e);
}

int main(int argc, char **argv)
{
	static struct fetcher f;
	pid_t parent = getppid();
	struct err e = { 0 };
	struct stat st;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the group; caisson-image ends this */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (fstat(IMAGE_FETCH_CONFIG_FD, &st) < 0 ||
	    fcntl(IMAGE_FETCH_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "caisson-image-fetch: started by caisson, not by hand\n");
		return 2;
	}
	if (prepare(argc, argv, &f, &e) < 0 || prime_libraries(&e) < 0 ||
	    enter_jail(parent, &e) < 0)
		return fail(&e, NO_LAYER);
	return serve(&f);
}
