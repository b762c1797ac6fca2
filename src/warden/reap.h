/* SPDX-License-Identifier: Apache-2.0 */
/* reap.h - Processes that died and have to be waited for. For events.c. */
#ifndef CAISSON_WARDEN_REAP_H
#define CAISSON_WARDEN_REAP_H

#include <sys/types.h>

struct warden;

#define STRAY_AGAIN_NS 5000000u /* how often those who should be dead are looked at */

/* reap_add_stray() - It is nobody's any more: wait for it. @pid may be a lie of a zygote: one that
 * is somebody's is not taken. */
void reap_add_stray(struct warden *w, pid_t pid);

/* reap_strays() - Collect those we were told of, and then whoever died and is nobody's; look again
 * while there may be more. */
void reap_strays(struct warden *w);

#endif
