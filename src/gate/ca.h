/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca.h - A certificate authority of one sandbox: its key is made here, never leaves, and ends with
 * the sandbox.
 *
 * Nobody but what runs in that sandbox trusts it. For each host that is looked into it signs a
 * certificate, when that is first needed.
 */
#ifndef CAISSON_GATE_CA_H
#define CAISSON_GATE_CA_H

struct buf;
struct ca;
struct tls_server;

/* ca_new() - 0 or -ENOMEM. */
int ca_new(struct ca **ret);
void ca_free(struct ca *c); /* NULL too; sessions may outlive it */

/* ca_pem() - Append its certificate. 0 or -errno. */
int ca_pem(const struct ca *c, struct buf *out);

/* ca_server() - What proves to be @host, a canonical name. Borrowed until the next call. NULL: out
 * of memory. */
struct tls_server *ca_server(struct ca *c, const char *host);

#endif
