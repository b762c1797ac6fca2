/* SPDX-License-Identifier: Apache-2.0 */
/* test_network_words.c - Words of programs that found no host, and words that resemble them. */
#include "../unit.h"
#include "base/fd.h"
#include "client/network_words.h"
#include <string.h>

TEST(words)
{
	static const char *const found[] = {
		"socket.gaierror: [Errno -3] Temporary failure in name resolution",
		"curl: (6) Could not resolve host: example.org",
		"npm error code EAI_AGAIN",
		"wget: unable to resolve host address 'example.org'",
		"dial tcp: lookup example.org on 198.18.0.1:53: read: connection refused",
		"OSError: [Errno 101] Network is unreachable",
		"ssh: Could not resolve hostname example.org: Name or service not known",
		"java.net.UnknownHostException: example.org",
		"Err:1 http://deb.debian.org stable InRelease\n  Temporary failure resolving "
		"'deb.debian.org'",
	};
	static const char *const other[] = {
		"",
		"ZeroDivisionError: division by zero",
		"No such file or directory",
		"could not resolve the conflict",
		"the network is up",
	};

	for (size_t i = 0; i < ARRAY_SIZE(found); i++)
		assert_true(network_words(found[i], strlen(found[i])));
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(network_words(other[i], strlen(other[i])));
	assert_false(network_words(found[2], strlen(found[2]) - 1));
}
