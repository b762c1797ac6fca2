/* SPDX-License-Identifier: Apache-2.0 */
/* enter.h - How a process that was forked into a cell becomes a sealed process of it. */
#ifndef CAISSON_ZYGOTE_ENTER_H
#define CAISSON_ZYGOTE_ENTER_H

#include <stdint.h>

#include "wire/zygote.h"

/* Reports on the hello socket that @step failed with @code, and ends the process. */
_Noreturn void enter_fail(int hello, uint32_t step, int code);

/*
 * For the kernel, after the warden's byte: give everything up that a process of this cell does not
 * have, and report that. Ends the process if a step fails. @fds: enum zygote_fd; all descriptors
 * are closed afterwards, except 0 to 4.
 */
void enter_seal(const struct zygote_req *q, const int *fds);

#endif
