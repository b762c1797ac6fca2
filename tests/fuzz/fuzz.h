/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - Shared by the fuzz targets: the entry point, require(), and the input as a text. */
#ifndef CAISSON_FUZZ_H
#define CAISSON_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Abort, which is a finding, unless the condition holds. */
#define require(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,    \
				      #condition);                                                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The input with a NUL behind it, to be freed; its allocation ends there, for the sanitizer. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	require(text);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
