/* SPDX-License-Identifier: Apache-2.0 */
/* wording.h - From the daemon's words, which speak of HTTP, to those of the command. */
#ifndef CAISSON_REMOTE_WORDING_H
#define CAISSON_REMOTE_WORDING_H

#include <stddef.h>

/* wording() - @text with requests and fields of the API as commands and options. @out: of @size.
 * Pure. */
void wording(const char *text, char *out, size_t size);

#endif
