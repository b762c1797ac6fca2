/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type_into_tty.c - Type into, or take over, the terminal on descriptor 0.
 *
 *   type_into_tty TEXT   every way to put TEXT into the terminal's input, then the console
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "say.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

static void type_in(const char *name, unsigned long request, const char *text)
{
	long r = 0;

	for (const char *p = text; *p && r == 0; p++)
		r = syscall(SYS_ioctl, 0, request, p);
	say(name, r);
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : "x";
	char paste = 3;         /* TIOCL_PASTESEL */
	int discipline = 3, fd; /* N_PPP: would load a module */

	(void)printf("tty0 %d\n", isatty(0));
	say("TIOCSETD", ioctl(0, TIOCSETD, &discipline));
	(void)ioctl(0, TIOCSETD, &(int){ 0 });
	type_in("TIOCSTI", TIOCSTI, text);
	type_in("TIOCSTI-high", 0x100000000ul | TIOCSTI, text); /* the kernel cuts to 32 bits */
	say("TIOCLINUX", ioctl(0, TIOCLINUX, &paste));
	fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
	say("open-dev-tty", fd);
	if (fd >= 0) {
		for (const char *p = text; *p; p++)
			if (ioctl(fd, TIOCSTI, p) < 0)
				break;
		say("TIOCSTI-dev-tty", ioctl(fd, TIOCSTI, text));
	}
	fd = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
	say("open-dev-console", fd);
	say("KDSETLED", fd < 0 ? -1 : ioctl(fd, 0x4B32, 0));
	(void)printf("done\n");
	return 0;
}
