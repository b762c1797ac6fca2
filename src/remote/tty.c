/* SPDX-License-Identifier: Apache-2.0 */
/* tty.c - termios of stdin, kept for as long as they are changed; a line of progress. */
#include "remote/tty.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"

static struct termios saved;
static enum tty_mode mode_now;
static volatile sig_atomic_t entered;

/* Faults of our own; tty_signals() reads the other signals that would end us. */
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

		for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
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

bool tty_color(void)
{
	static int wanted = -1;

	if (wanted < 0) {
		const char *no = getenv("NO_COLOR");

		wanted = isatty(STDOUT_FILENO) && !(no && *no);
	}
	return wanted;
}

void tty_style(const char *code)
{
	if (tty_color())
		(void)printf("\033[%sm", code);
}

int tty_signals(bool terminal)
{
	static const int wanted[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT,
	};

	return fd_signals(wanted, terminal ? ARRAY_SIZE(wanted) : 3, NULL);
}

int tty_signal(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

/* ---- progress ------------------------------------------------------------------------------ */

void meter_begin(struct meter *m, uint64_t total)
{
	uint64_t now = clock_now_ns();

	*m = (struct meter){ .begin_ns = now,
			     .next_ns = isatty(STDERR_FILENO) ? now + CLOCK_NS_PER_S : UINT64_MAX,
			     .total = total };
}

void meter_text(uint64_t done, uint64_t total, uint64_t ns, char *text, size_t size)
{
	char a[NUM_FORMAT_MAX], b[NUM_FORMAT_MAX], c[NUM_FORMAT_MAX];
	uint64_t ms = ns / CLOCK_NS_PER_MS;
	double rate = ms ? (double)done * 1000 / (double)ms : 0;

	(void)snprintf(text, size, "%s%s%s, %s/s", num_format_size(done, a, sizeof(a)),
		       total ? " of " : "", total ? num_format_size(total, b, sizeof(b)) : "",
		       num_format_size((uint64_t)rate, c, sizeof(c)));
}

void meter_add(struct meter *m, size_t bytes)
{
	char text[4 * NUM_FORMAT_MAX];

	m->done += bytes;
	if (m->next_ns == UINT64_MAX)
		return;
	uint64_t now = clock_now_ns();

	if (now < m->next_ns)
		return;
	m->next_ns = now + CLOCK_NS_PER_S / 5;
	m->shown = true;
	meter_text(m->done, m->total, now - m->begin_ns, text, sizeof(text));
	(void)fprintf(stderr, "\r%s\033[K", text);
}

void meter_end(struct meter *m)
{
	if (m->shown)
		(void)fprintf(stderr, "\r\033[K");
	m->shown = false;
}
