/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set_id.c - The effect of a set-user-id, set-group-id or file-capability bit on us.
 *
 *   set_id FILE    print the ids, try for more, then try to read FILE
 */
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "say.h"

static void ids(const char *when)
{
	uid_t r, e, s;
	gid_t gr, ge, gs;

	if (getresuid(&r, &e, &s) == 0 && getresgid(&gr, &ge, &gs) == 0)
		(void)printf("%s uid %u %u %u gid %u %u %u\n", when, r, e, s, gr, ge, gs);
}

int main(int argc, char **argv)
{
	char text[256];

	ids("start");
	say("setuid-0", setuid(0));
	say("setresuid-0", setresuid(0, 0, 0));
	say("setgid-0", setgid(0));
	ids("after");
	int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	say("open", fd);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (n > 0)
		(void)fwrite(text, 1, (size_t)n, stdout);
	return 0;
}
