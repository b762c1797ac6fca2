/* SPDX-License-Identifier: Apache-2.0 */
/* run_image.h - The stored image of one run, borrowed from the image opener, with its
 * configuration. */
#ifndef CAISSON_CLI_RUN_IMAGE_H
#define CAISSON_CLI_RUN_IMAGE_H

#include <stddef.h>

#include "client/image_opener_client.h"

struct err;
struct run_options;

#define RUN_IMAGE_WORDS_MAX 2048

/* All zero: another kind of image. Strings point into the loan. */
struct run_image {
	struct loan loan;
	const char *workdir; /* NULL: it names none */
	size_t n_env;
	const char *env[RUN_IMAGE_WORDS_MAX];
	size_t n_command;
	const char *command[RUN_IMAGE_WORDS_MAX]; /* its entrypoint and command, in this order */
};

/* run_image_open() - Borrow it and complete @o: layers, and the user unless --user was given. */
int run_image_open(struct run_options *o, struct run_image *ret, struct err *e);

#endif
