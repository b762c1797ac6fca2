/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_index.h - Which package index the daemon uses: the one that the operator names, else the
 * one that pip and npm of this machine would use, else the public one.
 *
 * The starter reads their configuration files itself, bounded, and runs no program of theirs.
 * Credentials leave this process in one way only: as lines of the vault (vault/index.h), in a memfd
 * that the gate's supervisor reads.
 */
#ifndef CAISSON_CLI_PACKAGE_INDEX_H
#define CAISSON_CLI_PACKAGE_INDEX_H

#include <stdbool.h>

#include "vault/index.h"

struct buf;
struct err;

/* For the front, beside CAISSON_PIP_INDEX and CAISSON_NPM_REGISTRY: from and note of a choice. */
#define INDEX_FROM_ENV "_FROM"
#define INDEX_NOTE_ENV "_NOTE"

#define INDEX_FROM_MAX 256u
#define INDEX_NOTE_MAX 512u
#define INDEX_FILE_MAX (64u << 10)

struct index_choice {
	struct index_url url;
	bool on;                   /* url is one; otherwise nothing is installed */
	char from[INDEX_FROM_MAX]; /* the file or variable that names it */
	char note[INDEX_NOTE_MAX]; /* off: why. on: a setting that is not followed. Or empty */
	struct index_keys keys;
	char variable[64]; /* of the environment that keys came from; empty: none */
};

/*
 * index_of_machine() - The index that pip or npm would use. One that cannot be used is off, with
 * the reason as note.
 * @root: stands before each path, for tests; "" otherwise
 */
void index_of_machine(enum index_kind kind, char **env, const char *root, struct index_choice *ret);

/*
 * index_settle() - For `caisson serve`: the indexes go into @argv and the environment without their
 * credentials, with variables that name their source; the credentials are appended to @lines
 * (vault.h). Return: 0, or -EINVAL: an option or variable of ours is wrong.
 */
int index_settle(char **argv, struct buf *lines, struct err *e);

#define INI_VALUE_MAX 8192u

struct ini_form {
	const char *delimiters; /* the first of these ends a key */
	int continues;          /* an indented line goes on with the value before it */
};

extern const struct ini_form ini_python; /* configparser of python */
extern const struct ini_form ini_npm;

/*
 * ini_read() - Call @fn for each pair of a text "[section]", "key = value", in their order. @text
 * is taken apart; @section is "" before the first one. Spaces around keys and values are not part
 * of them; lines of a continued value are separated by line feeds. Any other line, and a value of
 * INI_VALUE_MAX bytes or more, is skipped. Pure.
 */
void ini_read(const struct ini_form *form, char *text,
	      void (*fn)(void *arg, const char *section, const char *key, const char *value),
	      void *arg);

/* ---- for index_pip.c and index_npm.c ------------------------------------------------------- */

void index_pip(char **env, const char *root, struct index_choice *ret);
/* index_npm() - @ret on: that registry, for which only credentials are looked up. */
void index_npm(char **env, const char *root, struct index_choice *ret);

/* Files that are read one after another. */
struct index_files {
	const struct ini_form *form;
	const char *root; /* stands before each path */
	/* @arg: this struct. */
	void (*fn)(void *arg, const char *section, const char *key, const char *value);
	const char *path; /* of the file that is read, while @fn is called */
	char *note;       /* INDEX_NOTE_MAX bytes: why a file was not read */
};

/* index_read() - The pairs of the file @dir@name, if it is there, bounded, and of ours or root's.
 * @dir: NULL: read nothing. */
void index_read(struct index_files *f, const char *dir, const char *name);

/* index_take() - Use this one; or be off, with the reason. */
void index_take(enum index_kind kind, const char *text, const char *from, struct index_choice *ret);
void index_off(struct index_choice *ret, const char *why);
/* index_distrust() - A file was not read (@ret->note): what it names must not be replaced by the
 * public index. */
void index_distrust(struct index_choice *ret, const char *option);

#endif
