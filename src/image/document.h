/* SPDX-License-Identifier: Apache-2.0 */
/* document.h - A JSON object of a stranger's. For manifest.c, config.c and who reads other lists of
 * images. */
#ifndef CAISSON_IMAGE_DOCUMENT_H
#define CAISSON_IMAGE_DOCUMENT_H

#include <jansson.h>
#include <stddef.h>

struct err;

void document_free(json_t **doc);
#define _document_ __attribute__((cleanup(document_free)))

/* document_load() - An object of at most MANIFEST_BYTES_MAX; NULL with a message that names @what.
 */
json_t *document_load(const char *what, const char *text, size_t len, struct err *e);

/* document_text() - A member that is a string; "" when it is not. Borrowed. */
const char *document_text(const json_t *of, const char *member);

#endif
