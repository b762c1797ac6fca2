/* SPDX-License-Identifier: Apache-2.0 */
/* mime.h - What a file is, as far as its name tells. */
#ifndef CAISSON_FRONT_MIME_H
#define CAISSON_FRONT_MIME_H

/* mime_of() - A media type; application/octet-stream when the name tells nothing. Static. Pure. */
const char *mime_of(const char *path);

#endif
