/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c - Start caisson-image-fetch, and take what it brings.
 *
 * It reads the answers of a registry, which may take it over. It then decides what the image of a
 * tag is, as the registry does; what it may not decide is what is in the store under the name of
 * something else. So every digest is checked for its form before it becomes the name of a file, the
 * documents are hashed here, and the hash of a layer is computed by a process that parses nothing
 * (layer.h). This process parses none of it.
 */
#include "image/fetch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "client/program.h"
#include "image/incoming.h"
#include "image/registry_creds.h"

#define PROGRAM "caisson-image-fetch"

_Static_assert(IMAGE_LAYERS_MAX == IMAGE_FETCH_LAYERS_MAX &&
		       IMAGE_DIGEST_MAX == IMAGE_FETCH_DIGEST_MAX &&
		       IMAGE_REF_MAX == IMAGE_FETCH_REF_MAX,
	       "as open.h has them");
_Static_assert(sizeof(((struct image_fetch_req *)0)->user) == sizeof(((struct creds *)0)->user) &&
		       sizeof(((struct image_fetch_req *)0)->password) ==
			       sizeof(((struct creds *)0)->password),
	       "credentials fit");

/* ---- the process --------------------------------------------------------------------------- */

int fetch_start(struct fetch *f, const char *ca, bool insecure, struct err *e)
{
	/* Variables that it inherits: proxies. */
	static const char *const names[] = {
		"HTTPS_PROXY=", "https_proxy=", "http_proxy=", "NO_PROXY=",
		"no_proxy=",    "ALL_PROXY=",   "all_proxy=",  NULL
	};
	char name[] = PROGRAM, insecure_arg[] = "--insecure", ca_arg[4096 + 8];
	char *argv[4] = { name }, *envp[ARRAY_SIZE(names)];
	struct spawn s = { .argv = argv, .envp = envp, .no_input = true, .no_output = true };
	size_t n = 1;

	if (insecure)
		argv[n++] = insecure_arg;
	if (ca) {
		if ((size_t)snprintf(ca_arg, sizeof(ca_arg), "--ca=%s", ca) >= sizeof(ca_arg))
			return err_say(e, -ENAMETOOLONG, "--ca: the path is too long");
		argv[n++] = ca_arg;
	}
	f->manifest = memfd_create("manifest", MFD_CLOEXEC);
	f->config = memfd_create("config", MFD_CLOEXEC);
	if (f->manifest < 0 || f->config < 0)
		return err_set(e, -errno, "make room for the documents of an image");
	s.fds[s.n_fds++] = (struct spawn_fd){ f->manifest, IMAGE_FETCH_MANIFEST_FD };
	s.fds[s.n_fds++] = (struct spawn_fd){ f->config, IMAGE_FETCH_CONFIG_FD };
	spawn_pick_env(environ, names, envp, ARRAY_SIZE(envp));
	f->sock = program_start(&s, IMAGE_FETCH_FD, &f->pid, e);
	return f->sock < 0 ? f->sock : 0;
}

void fetch_end(struct fetch *f)
{
	f->sock = fd_close(f->sock);
	f->manifest = fd_close(f->manifest);
	f->config = fd_close(f->config);
	if (f->pid > 0) {
		(void)kill(f->pid, SIGKILL);
		(void)TEMP_FAILURE_RETRY(waitpid(f->pid, NULL, 0));
	}
	f->pid = 0;
}

/* ---- replies ------------------------------------------------------------------------------- */

/* It may have been taken over: end every text. */
static void end_texts(struct image_fetch_reply *r)
{
	r->msg[sizeof(r->msg) - 1] = '\0';
	r->digest[sizeof(r->digest) - 1] = r->config[sizeof(r->config) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(r->layers); i++) {
		r->layers[i].digest[sizeof(r->layers[i].digest) - 1] = '\0';
		r->layers[i].diff_id[sizeof(r->layers[i].diff_id) - 1] = '\0';
	}
}

int fetch_hear(struct fetch *f, struct image_fetch_reply *ret, struct err *e)
{
	size_t no_fds = 0;
	ssize_t n = fd_recv(f->sock, ret, sizeof(*ret), NULL, &no_fds);

	if (n == (ssize_t)sizeof(*ret) && ret->version == IMAGE_FETCH_VERSION) {
		end_texts(ret);
		if (ret->say != IMAGE_FETCH_FAILED)
			return 0;
		/* A number that is no error must not look like success. */
		return err_say(e, ret->code < 0 && ret->code > -4096 ? ret->code : -EPROTO,
			       "%.380s", ret->msg);
	}
	ret->layer = UINT32_MAX;
	if (n == 0 || n == -ECONNRESET)
		return err_say(e, -EIO, PROGRAM ", which talks to the registry, has ended");
	return n < 0 ? err_set(e, (int)n, "hear from " PROGRAM) :
		       err_say(e, -EPROTO,
			       "caisson-image and " PROGRAM
			       " are of different versions; reinstall both");
}

/* ---- the documents ------------------------------------------------------------------------- */

/* The content of @fd, which has the digest @want. */
static int take_document(int fd, const char *what, const char *want, struct buf *ret, struct err *e)
{
	size_t len = 0;
	_mem_ char *text = fd_read_whole(fd, MANIFEST_BYTES_MAX, &len);

	if (!text)
		return err_set(e, -errno, "read the %s of the image", what);
	if (!digest_is(want, text, len))
		return err_say(e, -EBADMSG, "the %s of the image is not %s", what, want);
	buf_clear(ret);
	return buf_append(ret, text, len) < 0 ? err_set(e, -ENOMEM, "keep the %s", what) : 0;
}

/* Digests become names of files of the store. */
static bool is_sound(const struct image_fetch_reply *r)
{
	if (r->say != IMAGE_FETCH_FOUND || r->n_layers < 1 || r->n_layers > IMAGE_LAYERS_MAX ||
	    !ref_digest_ok(r->digest) || !ref_digest_ok(r->config))
		return false;
	for (size_t i = 0; i < r->n_layers; i++)
		if (!ref_digest_ok(r->layers[i].digest) || !ref_digest_ok(r->layers[i].diff_id) ||
		    r->layers[i].size > LAYER_BYTES_MAX)
			return false;
	return true;
}

static void put_blob(struct blob *to, const char *digest, uint64_t size)
{
	memcpy(to->digest, digest, sizeof(to->digest));
	to->size = size;
}

int fetch_image(struct fetch *f, const struct ref *ref, const struct creds *creds,
		struct incoming *in, struct err *e)
{
	static struct image_fetch_reply r;
	struct image_fetch_req q = { .version = IMAGE_FETCH_VERSION, .op = IMAGE_FETCH_BEGIN };

	ref_format(ref, q.ref);
	memcpy(q.user, creds->user, sizeof(q.user));
	memcpy(q.password, creds->password, sizeof(q.password));
	int code = fd_send(f->sock, &q, sizeof(q), NULL, 0);

	explicit_bzero(&q, sizeof(q));
	/* When it has ended already, its reply tells why. */
	if (code < 0 && code != -EPIPE && code != -ECONNRESET)
		return err_set(e, code, "start " PROGRAM);
	if (fetch_hear(f, &r, e) < 0)
		return e->code;
	if (!is_sound(&r))
		return err_say(e, -EPROTO, PROGRAM " reports an image that cannot be");
	if (take_document(f->manifest, "manifest", r.digest, &in->manifest, e) < 0 ||
	    take_document(f->config, "configuration", r.config, &in->config, e) < 0)
		return e->code;
	memcpy(in->ret->digest, r.digest, sizeof(r.digest));
	put_blob(&in->m.config, r.config, r.config_size);
	in->m.n_layers = in->c.n_layers = r.n_layers;
	for (size_t i = 0; i < r.n_layers; i++) {
		put_blob(&in->m.layers[i], r.layers[i].digest, r.layers[i].size);
		memcpy(in->c.diff_ids[i], r.layers[i].diff_id, sizeof(in->c.diff_ids[i]));
	}
	incoming_show(in);
	return 0;
}

int fetch_layer(struct fetch *f, size_t i, int file, struct err *e)
{
	const struct image_fetch_req q = { .version = IMAGE_FETCH_VERSION,
					   .op = IMAGE_FETCH_LOAD,
					   .layer = (uint32_t)i };
	int r = fd_send(f->sock, &q, sizeof(q), &file, 1);

	/* When it has ended, fetch_hear() tells why. */
	return r < 0 && r != -EPIPE && r != -ECONNRESET ? err_set(e, r, "ask for a layer") : 0;
}
