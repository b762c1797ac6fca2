/* SPDX-License-Identifier: Apache-2.0 */
/* network_words.c - The words of programs whose host could not be found or reached. */
#include "client/network_words.h"

#include <string.h>

#include "base/fd.h" /* ARRAY_SIZE */

bool network_words(const char *text, size_t len)
{
	static const char *const words[] = {
		"emporary failure in name resolution", /* getaddrinfo: Python, curl, ssh, R */
		"ame or service not known",
		"emporary failure resolving", /* apt */
		"ould not resolve host",      /* curl, git, ssh, npm */
		"nable to resolve host",      /* wget */
		"EAI_AGAIN",                  /* node */
		"ENOTFOUND",
		"ENETUNREACH",
		"etwork is unreachable",
		"198.18.0.1:53", /* Go: "lookup example.org on 198.18.0.1:53: ..." */
		"no such host",
		"dns error", /* uv, cargo */
		"failed to lookup address",
		"bad address '",        /* busybox */
		"UnknownHostException", /* Java */
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}
