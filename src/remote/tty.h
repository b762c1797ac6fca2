/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty.h - Our terminal: its mode, its size, its colours, the signals that come from it, and a line
 * of progress.
 *
 * The terminal is restored on return, on exit(), on a signal that ends us, and while we are
 * stopped. Only SIGKILL leaves it changed.
 */
#ifndef CAISSON_REMOTE_TTY_H
#define CAISSON_REMOTE_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tty_mode {
	TTY_RAW, /* every key goes to the program */
	/* Keys come one by one and are not echoed; Ctrl-C is a signal. On the other screen. */
	TTY_KEYS,
};

/* tty_enter() - Of stdin. False when that is no terminal, and nothing was changed. */
bool tty_enter(enum tty_mode mode);
void tty_leave(void); /* idempotent */

/* tty_stop() - Leave, stop as if by Ctrl-Z, and enter again when continued. */
void tty_stop(void);

/* tty_size() - Rows and columns of stdout; 24 x 80 where it is no terminal. */
void tty_size(uint16_t *rows, uint16_t *cols);

/* tty_color() - Whether stdout wants colours: it is a terminal, and NO_COLOR is not set. */
bool tty_color(void);

/* tty_style() - Print an escape sequence ("31": red, "0": plain) where tty_color(). */
void tty_style(const char *code);

/*
 * tty_signals() - A signalfd for SIGINT, SIGTERM and SIGHUP, which are blocked from now on; with
 * @terminal also for SIGQUIT, SIGWINCH, SIGTSTP and SIGCONT. Negative: it could not be made.
 */
int tty_signals(bool terminal);
/* tty_signal() - The next signal of such a descriptor; 0: none. */
int tty_signal(int fd);

/* The progress of a copy: a line on stderr, on a terminal, after the first second. */
struct meter {
	uint64_t begin_ns, next_ns; /* next_ns UINT64_MAX: never */
	uint64_t done, total;       /* bytes; total 0: not known */
	bool shown;
};

void meter_begin(struct meter *m, uint64_t total);
void meter_add(struct meter *m, size_t bytes);
void meter_end(struct meter *m); /* takes the line away */

/* meter_text() - "12 MiB of 40 MiB, 3 MiB/s" into @text. Pure. */
void meter_text(uint64_t done, uint64_t total, uint64_t ns, char *text, size_t size);

#endif
