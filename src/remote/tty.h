/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty.h - Our terminal: its mode, its size, its colours, and the signals that come from it.
 *
 * The terminal is restored on return, on exit(), on a signal that ends us, and while we are
 * stopped. Only SIGKILL leaves it changed.
 */
#ifndef CAISSON_REMOTE_TTY_H
#define CAISSON_REMOTE_TTY_H

#include <stdbool.h>
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
 * @terminal also for SIGQUIT, SIGWINCH, SIGTSTP and SIGCONT. Negative: there is none.
 */
int tty_signals(bool terminal);
/* tty_signal() - The next signal of such a descriptor; 0: none. */
int tty_signal(int fd);

#endif
