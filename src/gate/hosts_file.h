/* SPDX-License-Identifier: Apache-2.0 */
/* hosts_file.h - The machine's hosts file, read once; its entries come before DNS. */
#ifndef CAISSON_GATE_HOSTS_FILE_H
#define CAISSON_GATE_HOSTS_FILE_H

#include <netinet/in.h>
#include <stddef.h>

struct host_row {
	char *host;
	struct in6_addr address; /* IPv4 as mapped */
};

struct hosts_file {
	struct host_row *rows;
	size_t n;
};

/* hosts_file_read() - An unreadable file counts as empty; so does one above 64 KiB. */
void hosts_file_read(struct hosts_file *h, const char *path);
void hosts_file_parse(struct hosts_file *h, char *text); /* changes @text */
size_t hosts_file_find(const struct hosts_file *h, const char *host, struct in6_addr *ret,
		       size_t max);
void hosts_file_free(struct hosts_file *h);

#endif
