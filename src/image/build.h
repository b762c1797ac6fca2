/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - A root file system from Debian packages, as an archive.
 *
 * mmdebstrap does it. It runs the packages' maintainer scripts, which want to be root: as root that
 * is the root of a user namespace whose users are those of the image store (image/open.h) and own
 * nothing else; as anybody else mmdebstrap makes such a namespace of the caller's own range
 * (/etc/subuid). The network is the machine's: apt needs it, and checks what it brings by Debian's
 * keys.
 */
#ifndef CAISSON_IMAGE_BUILD_H
#define CAISSON_IMAGE_BUILD_H

#include "image/open.h"
#include "image/show.h"

struct err;

struct build_request {
	const char *suite;    /* "bookworm" */
	const char *mirror;   /* NULL: mmdebstrap's own choice */
	const char *packages; /* with commas between them */
};

/*
 * build_tar() - Write the archive to @to, and its digest to @ret_diff_id.
 * What mmdebstrap says on the way is shown; the last of it is in the message when it fails.
 */
int build_tar(const struct build_request *w, int to, struct show *show,
	      char ret_diff_id[IMAGE_DIGEST_MAX], uint64_t *ret_size, struct err *e);

#endif
