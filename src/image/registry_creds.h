/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_creds.h - User and password for a registry, from the files of other tools.
 *
 * The first file that exists counts: --authfile, $REGISTRY_AUTH_FILE, $DOCKER_CONFIG/config.json,
 * ~/.docker/config.json, $XDG_RUNTIME_DIR/containers/auth.json. Its "auths" are read, and helpers
 * ("credHelpers", "credsStore": the program docker-credential-NAME on the PATH) are run.
 */
#ifndef CAISSON_IMAGE_REGISTRY_CREDS_H
#define CAISSON_IMAGE_REGISTRY_CREDS_H

#include <stddef.h>

struct err;

struct creds {
	char user[256], password[4096]; /* both "": there are no credentials */
	char helper[64];                /* a program that has them; "": no program */
};

/*
 * creds_parse() - The credentials for @host in a config.json. Pure.
 * Return: 0, also without credentials for @host; -EBADMSG.
 */
int creds_parse(const char *text, size_t len, const char *host, struct creds *ret, struct err *e);

/* creds_find() - For @host. @authfile: NULL, or a file that must exist. 0 or -errno. */
int creds_find(const char *host, const char *authfile, struct creds *ret, struct err *e);

#endif
