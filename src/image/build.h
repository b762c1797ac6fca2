/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - A root file system from Debian packages, as an archive.
 *
 * mmdebstrap makes it. It runs the packages' maintainer scripts, which expect to be root. Started
 * by root they are the root of a user namespace whose users are those of the image store
 * (image/open.h) and own nothing else; otherwise mmdebstrap makes such a namespace of the caller's
 * own range (/etc/subuid). The network is the machine's: apt needs it, and checks what it loads by
 * Debian's keys.
 */
#ifndef CAISSON_IMAGE_BUILD_H
#define CAISSON_IMAGE_BUILD_H

#include "image/open.h"
#include "image/show.h"

struct err;

struct build_request {
	const char *suite;    /* "bookworm" */
	const char *mirror;   /* NULL: mmdebstrap's own choice */
	const char *packages; /* separated by commas */
};

/*
 * build_tar() - Write the archive to @to, and its digest to @ret_diff_id.
 * mmdebstrap's progress is shown; when it fails, the message has its last error.
 */
int build_tar(const struct build_request *w, int to, struct show *show,
	      char ret_diff_id[IMAGE_DIGEST_MAX], uint64_t *ret_size, struct err *e);

#endif
