/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_core.c - Raise every core limit there is, then abort with a full heap and the nonce in it.
 *
 *   dump_core MIB NONCE
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "say.h"

int main(int argc, char **argv)
{
	size_t size = (argc > 2 ? (size_t)atol(argv[1]) : 1) << 20;
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	char *heap = malloc(size);

	if (!heap)
		return 2;
	memset(heap, 'c', size);
	(void)snprintf(heap, size, "%s", argc > 2 ? argv[2] : "");
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	say("setrlimit-core", setrlimit(RLIMIT_CORE, &all));
	abort();
}
