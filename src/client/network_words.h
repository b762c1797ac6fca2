/* SPDX-License-Identifier: Apache-2.0 */
/* network_words.h - Whether the output of a program shows that it missed the network. */
#ifndef CAISSON_CLIENT_NETWORK_WORDS_H
#define CAISSON_CLIENT_NETWORK_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define NETWORK_WORDS_MAX (64u << 10) /* bytes of a stream that are searched */

/* network_words() - Whether a text has the words of a program that found no host. Pure. */
bool network_words(const char *text, size_t len);

#endif
