/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.h - The machine's own table of names, read once: the operator's word comes before DNS. */
#ifndef CAISSON_GATE_HOSTS_H
#define CAISSON_GATE_HOSTS_H

#include <netinet/in.h>
#include <stddef.h>

struct host_row {
	char *host;
	struct in6_addr address; /* IPv4 as mapped */
};

struct hosts {
	struct host_row *rows;
	size_t n;
};

/* hosts_read() - What can not be read is as if it were empty; at most 64 KiB of it. */
void hosts_read(struct hosts *h, const char *path);
void hosts_parse(struct hosts *h, char *text); /* @text is taken apart */
size_t hosts_find(const struct hosts *h, const char *host, struct in6_addr *ret, size_t max);
void hosts_free(struct hosts *h);

#endif
