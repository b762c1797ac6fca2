/* SPDX-License-Identifier: Apache-2.0 */
/*
 * creds.h - User and password for a registry, from where other tools keep them.
 *
 * The first file that is there counts: --authfile, $REGISTRY_AUTH_FILE, $DOCKER_CONFIG/config.json,
 * ~/.docker/config.json, $XDG_RUNTIME_DIR/containers/auth.json. Of it "auths", and helpers
 * ("credHelpers", "credsStore": the program docker-credential-NAME on the PATH).
 */
#ifndef CAISSON_IMAGE_CREDS_H
#define CAISSON_IMAGE_CREDS_H

#include <stdbool.h>
#include <stddef.h>

struct err;

struct creds {
	char user[256], password[4096]; /* both "": none */
	char helper[64];                /* "": no program has to be asked */
};

/*
 * creds_parse() - What a config.json says of @host. Pure.
 * Return: 0, with nothing found too; -EBADMSG.
 */
int creds_parse(const char *text, size_t len, const char *host, struct creds *ret, struct err *e);

/* creds_find() - For @host. @authfile: NULL, or one that must be there. 0 or -errno. */
int creds_find(const char *host, const char *authfile, struct creds *ret, struct err *e);

#endif
