/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - Names for what has arrived. */
#include "image/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/digest.h"
#include "image/refs.h"

static int make_lease(const struct store *s, const char *digest, struct err *e)
{
	_fd_ int fd = openat(s->leases, digest_hex(digest),
			     O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || fsync(s->leases) < 0 ? err_set(e, -errno, "make a lease") : 0;
}

static int set_ref(const struct store *s, const struct publish *p, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	int r = refs_load(s, &refs, e);

	if (r == 0)
		r = refs_set(&refs, p->ref, p->digest, (uint64_t)time(NULL), e);
	return r == 0 ? refs_save(s, &refs, e) : r;
}

static bool is_new(const struct publish_layer *l)
{
	return l->tree && *l->tree;
}

static int keep_layers(const struct store *s, const struct publish *p, struct err *e)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < p->n_layers && r == 0; i++)
		if (is_new(&p->layers[i])) {
			n++;
			r = store_seal_write(s, p->layers[i].diff_id, p->layers[i].seal, e);
		}
	if (r == 0 && n)
		r = store_sync(s, e);
	for (size_t i = 0; i < p->n_layers && r == 0; i++)
		if (is_new(&p->layers[i]))
			r = store_tree_keep(s, p->layers[i].tree, p->layers[i].diff_id, e);
	if (r == 0 && n && fsync(s->layers) < 0)
		r = err_set(e, -errno, "name layers");
	for (size_t i = 0; i < p->n_layers && r == 0; i++)
		if (!store_has_layer(s, p->layers[i].diff_id))
			r = err_say(e, -EIO, "layer %s is gone", p->layers[i].diff_id);
	return r;
}

int publish(const struct store *s, const struct publish *p, struct err *e)
{
	int r = keep_layers(s, p, e);

	if (r == 0)
		r = store_blob_write(s, p->config_digest, buf_str(p->config), p->config->len, e);
	if (r == 0)
		r = store_blob_write(s, p->digest, buf_str(p->manifest), p->manifest->len, e);
	if (r == 0)
		r = make_lease(s, p->digest, e);
	return r == 0 ? set_ref(s, p, e) : r;
}
