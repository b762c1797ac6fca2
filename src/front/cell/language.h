/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language.h - The languages that kernels speak, and how an interpreter of each is started.
 */
#ifndef CAISSON_FRONT_LANGUAGE_H
#define CAISSON_FRONT_LANGUAGE_H

struct err;

enum language_id { LANG_PYTHON, LANG_BASH, LANG_JAVASCRIPT, LANG_R, LANG_MAX_ };

struct language {
	enum language_id id;
	const char *name;
	const char *aliases[4];
	const char *program; /* in the cell's PATH */
	const char *args[3]; /* before the driver */
	const char *driver;  /* file name in the guest directory */
};

extern const struct language languages[LANG_MAX_];

/* language_find() - By name or alias, any case. NULL when there is no such language. */
const struct language *language_find(const char *name);

/* The drivers, opened before the jail. */
struct drivers {
	int fd[LANG_MAX_];
};

/* drivers_open() - From the directory "guest" beside our own executable. */
int drivers_open(struct drivers *d, struct err *e);

#endif
