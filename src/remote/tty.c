/* SPDX-License-Identifier: Apache-2.0 */
/* tty.c - termios of stdin, kept for as long as they are changed. */
#include "remote/tty.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static enum tty_mode mode_now;
static volatile sig_atomic_t entered;

/* Faults of our own end us too; the others are blocked and read where tty is used. */
static const int fatal[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGQUIT };

static void put(const char *s)
{
	(void)!write(STDOUT_FILENO, s, strlen(s));
}

void tty_leave(void)
{
	if (!entered)
		return;
	entered = 0;
	if (mode_now == TTY_KEYS)
		put("\033[?25h\033[?1049l");
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
}

/* Only calls that a handler may make; the default action follows when it returns. */
static void on_fatal(int signo)
{
	tty_leave();
	(void)raise(signo);
}

static bool set_mode(void)
{
	struct termios t = saved;

	if (mode_now == TTY_RAW)
		cfmakeraw(&t);
	else
		t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0)
		return false;
	entered = 1;
	if (mode_now == TTY_KEYS)
		put("\033[?1049h\033[?25l");
	return true;
}

bool tty_enter(enum tty_mode mode)
{
	static bool prepared;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &saved) < 0)
		return false;
	if (!prepared) {
		struct sigaction sa = { .sa_handler = on_fatal,
					.sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };

		for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
			(void)sigaction(fatal[i], &sa, NULL);
		(void)atexit(tty_leave);
		prepared = true;
	}
	mode_now = mode;
	return set_mode();
}

void tty_stop(void)
{
	bool was = entered;

	tty_leave();
	(void)raise(SIGSTOP);
	if (was)
		(void)set_mode();
}

void tty_size(uint16_t *rows, uint16_t *cols)
{
	struct winsize w = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_row || !w.ws_col)
		w = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*rows = w.ws_row;
	*cols = w.ws_col;
}
