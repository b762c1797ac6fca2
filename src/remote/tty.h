/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty.h - Our terminal in another mode, and back.
 *
 * Whatever ends us, the terminal is as it was: on return, on exit(), on a signal that ends us, and
 * while we are stopped. Only SIGKILL is beyond that.
 */
#ifndef CAISSON_REMOTE_TTY_H
#define CAISSON_REMOTE_TTY_H

#include <stdbool.h>
#include <stdint.h>

enum tty_mode {
	TTY_RAW,  /* every key goes to the program */
	TTY_KEYS, /* keys come one by one and unseen; Ctrl-C still is a signal. On another screen.
		   */
};

/* tty_enter() - Of stdin. False when that is no terminal, and nothing was changed. */
bool tty_enter(enum tty_mode mode);
void tty_leave(void); /* idempotent */

/* tty_stop() - Leave, stop as if by Ctrl-Z, and enter again when continued. */
void tty_stop(void);

/* tty_size() - Rows and columns of stdout, 24 x 80 when nobody knows. */
void tty_size(uint16_t *rows, uint16_t *cols);

#endif
