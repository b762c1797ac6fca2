/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - From a reference to descriptors.
 *
 * Manifest and configuration are hashed each time: they determine which layers are stacked, so a
 * changed document in the store would give an image another root.
 */
#include "image/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/documents.h"
#include "image/image_store.h"

static int not_there(const struct ref *want, struct err *e)
{
	char text[IMAGE_REF_MAX];

	ref_short(want, text);
	return err_say(e, -ENOENT,
		       "the image %.200s is not in the store: caisson image pull %.200s", text,
		       text);
}

static int take_lease(const struct store *s, const char *digest, struct err *e)
{
	_fd_ int fd = openat(s->leases, digest_hex(digest), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open the lease of %s", digest);
	/* Never waits: it is locked exclusively only under the store's lock, which is ours now. */
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return err_set(e, -errno, "lease %s", digest);
	return TAKE_FD(fd);
}

static int open_layers(const struct store *s, const struct config *c, struct image *ret,
		       struct err *e)
{
	for (size_t i = 0; i < c->n_layers; i++) {
		int fd = store_open_layer(s, c->diff_ids[c->n_layers - 1 - i], e);

		if (fd < 0)
			return fd;
		ret->layers[ret->n_layers++] = fd;
	}
	return 0;
}

static int open_locked(const struct store *s, const struct ref *want, struct image *ret,
		       struct err *e)
{
	_refs_ struct refs refs = { 0 };
	const struct refs_row *row;
	struct manifest m;
	struct config c;
	int r = refs_load(s, &refs, e);

	if (r < 0)
		return r;
	row = refs_find(&refs, want);
	if (!row)
		return not_there(want, e);
	memcpy(ret->ref, row->ref, sizeof(ret->ref));
	memcpy(ret->digest, row->digest, sizeof(ret->digest));
	ret->lease = take_lease(s, ret->digest, e);
	if (ret->lease < 0)
		return ret->lease;
	r = store_documents(s, ret->digest, &m, &c, e);
	if (r < 0)
		return r;
	ret->config = c.run;
	return open_layers(s, &c, ret, e);
}

int image_open(int store, const char *text, struct image *ret, struct err *e)
{
	_store_ struct store s = STORE_NONE;
	struct ref want;
	int r;

	*ret = (struct image){ .lease = -1 };
	if ((r = ref_parse(text, &want, e)) < 0 || (r = store_open_at(&s, store, e)) < 0)
		return r;
	_fd_ int lock = store_lock(&s, false, e);

	if (lock < 0)
		return lock;
	r = open_locked(&s, &want, ret, e);
	if (r < 0)
		image_close(ret);
	return r;
}

void image_close(struct image *im)
{
	fd_close_all(im->layers, im->n_layers);
	fd_close(im->lease);
	image_config_free(&im->config);
	*im = (struct image){ .lease = -1 };
}
