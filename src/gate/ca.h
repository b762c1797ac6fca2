/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca.h - The certificate authority of one sandbox: its key is made in the gate, never leaves it,
 * and ends with the sandbox.
 *
 * Only programs in that sandbox trust it. It signs a certificate for each host whose requests the
 * gate reads, when the certificate is first needed.
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

/* ca_server() - A TLS server that can prove to be @host, a canonical name. Borrowed until the next
 * call. NULL: out of memory. */
struct tls_server *ca_server(struct ca *c, const char *host);

#endif
