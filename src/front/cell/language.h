/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language.h - The languages of kernels, and how the interpreter of each is started.
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

/* language_find() - Find a language by name or alias, in any case. NULL: unknown language. */
const struct language *language_find(const char *name);

/* The drivers of the interpreters, opened before the jail. */
struct drivers {
	int fd[LANG_MAX_];
};

/*
 * drivers_open() - Open the drivers, in the directory "guest" beside this executable or in
 * libexecdir.
 */
int drivers_open(struct drivers *d, struct err *e);

#endif
