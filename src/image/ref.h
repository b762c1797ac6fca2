/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref.h - Names of images: "python:3.11-slim", "registry.example.com:5000/x/y@sha256:...".
 *
 * The first part is a registry when it contains a dot or a colon or is "localhost"; otherwise the
 * registry is docker.io, and a name without a slash is one of docker.io/library. Without tag and
 * digest the tag is "latest". The canonical form has every part and is the key of the store. Pure.
 */
#ifndef CAISSON_IMAGE_REF_H
#define CAISSON_IMAGE_REF_H

#include <stdbool.h>

#include "image/open.h"

struct err;

#define REF_HOST_MAX 128
#define REF_NAME_MAX 176
#define REF_TAG_MAX 129
#define REF_DOCKER "docker.io"

struct ref {
	char host[REF_HOST_MAX]; /* lower case, with its port */
	char name[REF_NAME_MAX];
	char tag[REF_TAG_MAX];         /* "": only a digest */
	char digest[IMAGE_DIGEST_MAX]; /* "": only a tag */
};

/* ref_parse() - 0, or -EINVAL with a message that names the wrong part and the correct form. */
int ref_parse(const char *text, struct ref *ret, struct err *e);

/* ref_format() - The canonical form; it parses to the same. */
void ref_format(const struct ref *r, char text[IMAGE_REF_MAX]);

/* ref_short() - As people write it: without docker.io/library/. It parses to the same. */
void ref_short(const struct ref *r, char text[IMAGE_REF_MAX]);

/* ref_is_local() - Whether the registry is this machine, where plain HTTP is as safe as TLS. */
bool ref_is_local(const struct ref *r);

/* ref_digest_ok() - "sha256:" and 64 lower case hexadecimal digits. */
bool ref_digest_ok(const char *text);

/*
 * ref_pattern_ok() - A pattern of references: canonical or short; '*' stands for any characters.
 * ref_matches() - Whether the canonical or the short form of @r matches this pattern. A pattern
 * without tag and digest matches every tag.
 */
bool ref_pattern_ok(const char *pattern);
bool ref_matches(const struct ref *r, const char *pattern);

/*
 * ref_registry_ok() - A pattern of registries, HOST or HOST:PORT: "ghcr.io", "*.example.com:5000".
 * A port is part of the name, as in references.
 * ref_is_of() - Whether the registry of @r matches one of @patterns, which end with NULL.
 */
bool ref_registry_ok(const char *pattern);
bool ref_is_of(const struct ref *r, const char *const *patterns);

#endif
