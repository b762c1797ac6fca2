/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - Messages to a service manager, in the form of sd_notify(3). */
#ifndef CAISSON_CLIENT_NOTIFY_H
#define CAISSON_CLIENT_NOTIFY_H

/* notify_open() - Connect to NOTIFY_SOCKET and take it out of the environment. -1: none.
 */
int notify_open(void);
void notify_say(int fd, const char *text); /* does not wait; nothing with -1 */

#endif
