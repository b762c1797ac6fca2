/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - All parts of the daemon, made and tied together. */
#ifndef CAISSON_FRONT_MAIN_PARTS_H
#define CAISSON_FRONT_MAIN_PARTS_H

struct front;

extern const struct serve_hooks serve_hooks;

/* parts_make() - The one struct front of this process, with a zeroed struct for each part. */
struct front *parts_make(void);

#endif
