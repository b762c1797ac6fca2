/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS, by OpenSSL, over memory: it never touches a socket.
 *
 * A tls_server has a certificate and the rules, a tls_client has trusted certificates and the
 * rules; a tls is one connection's session with either. Ciphertext goes in with tls_feed() and
 * comes out of tls_output(); the owner of the socket sends and receives it.
 */
#ifndef CAISSON_NET_TLS_H
#define CAISSON_NET_TLS_H

#include <stddef.h>
#include <sys/types.h>

struct err;
struct tls_server;
struct tls_client;
struct tls;
struct evp_pkey_st; /* EVP_PKEY and X509 of OpenSSL */
struct x509_st;

/* The most plaintext that one record carries, and so one tls_write(). */
#define TLS_RECORD_MAX 16384

/*
 * tls_server_new() - Certificate chain and key, PEM. TLS 1.2 and 1.3 only, no renegotiation, no
 * compression, no tickets shared between restarts. The files are read here and never again.
 */
int tls_server_new(const char *cert_file, const char *key_file, struct tls_server **ret,
		   struct err *e);
/* tls_server_made() - The same with a certificate and key in memory, which stay the caller's. 0 or
 * -errno. */
int tls_server_made(struct x509_st *cert, struct evp_pkey_st *key, struct tls_server **ret);
void tls_server_free(struct tls_server *t); /* sessions may outlive it */

/*
 * tls_client_new() - Trusts the certificates of this machine and those in @ca_file (PEM; NULL: no
 * others). The same rules. All files are read here.
 */
int tls_client_new(const char *ca_file, struct tls_client **ret, struct err *e);
void tls_client_free(struct tls_client *c); /* sessions may outlive it */

/*
 * tls_connect() - A session with @host, a name or an address, which the server must prove. A name
 * is sent to it (SNI). Return: 0 or -ENOMEM.
 */
int tls_connect(struct tls_client *client, const char *host, struct tls **ret);
/* tls_problem() - Why a handshake failed; a static text. */
const char *tls_problem(const struct tls *t);

/* tls_new() - 0 or -ENOMEM. */
int tls_new(struct tls_server *server, struct tls **ret);
void tls_free(struct tls *t);

/*
 * tls_feed() - Take @len bytes of ciphertext. To bound memory, feed only when tls_handshake() or
 * tls_read() has just asked for more. 0 or -ENOMEM.
 */
int tls_feed(struct tls *t, const void *data, size_t len);

/* tls_handshake() - Continue it. 0 done, -EAGAIN more input is needed, -EPROTO failed. */
int tls_handshake(struct tls *t);

/*
 * tls_read() - Decrypt. Return: bytes, 0 the peer will send no more (close_notify),
 * -EAGAIN more input is needed, -EPROTO the stream is not (or no longer) TLS.
 */
ssize_t tls_read(struct tls *t, void *data, size_t size);

/* tls_peek() - As tls_read() of one byte, which is not taken. */
ssize_t tls_peek(struct tls *t);

/* tls_write() - Encrypt at most TLS_RECORD_MAX bytes. 0 or -EPROTO. */
int tls_write(struct tls *t, const void *data, size_t len);

/* tls_shutdown() - Send close_notify, once, unless the session failed. */
void tls_shutdown(struct tls *t);

/*
 * tls_output() - Ciphertext to be sent; valid until the next call. tls_sent() follows.
 */
size_t tls_output(struct tls *t, const char **ret);
void tls_sent(struct tls *t);

#endif
