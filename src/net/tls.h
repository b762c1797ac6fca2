/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - The server side of TLS, by OpenSSL, over memory: it never touches a socket.
 *
 * A tls_server is the certificate and the rules; a tls is one connection's session. Ciphertext goes
 * in with tls_feed() and comes out of tls_output(); whoever holds the socket carries it.
 */
#ifndef CAISSON_NET_TLS_H
#define CAISSON_NET_TLS_H

#include <stddef.h>
#include <sys/types.h>

struct err;
struct tls_server;
struct tls;

/* The most plaintext that one record carries, and so one tls_write(). */
#define TLS_RECORD_MAX 16384

/*
 * tls_server_new() - Certificate chain and key, PEM. TLS 1.2 and 1.3 only, no renegotiation, no
 * compression, no tickets shared between restarts. The files are read here and never again.
 */
int tls_server_new(const char *cert_file, const char *key_file, struct tls_server **ret,
		   struct err *e);
void tls_server_free(struct tls_server *t); /* sessions may outlive it */

/* tls_new() - 0 or -ENOMEM. */
int tls_new(struct tls_server *server, struct tls **ret);
void tls_free(struct tls *t);

/*
 * tls_feed() - Take @len bytes of ciphertext. To bound memory, feed only when tls_handshake() or
 * tls_read() has just asked for more. 0 or -ENOMEM.
 */
int tls_feed(struct tls *t, const void *data, size_t len);

/* tls_handshake() - Go on with it. 0 done, -EAGAIN more input is needed, -EPROTO failed. */
int tls_handshake(struct tls *t);

/*
 * tls_read() - Decrypt. Return: bytes, 0 the peer said that it will send no more (close_notify),
 * -EAGAIN more input is needed, -EPROTO the stream is not (or no longer) TLS.
 */
ssize_t tls_read(struct tls *t, void *data, size_t size);

/* tls_peek() - As tls_read() of one byte, which stays where it is. */
ssize_t tls_peek(struct tls *t);

/* tls_write() - Encrypt at most TLS_RECORD_MAX bytes. 0 or -EPROTO. */
int tls_write(struct tls *t, const void *data, size_t len);

/* tls_shutdown() - Say close_notify, once, and unless the session failed. */
void tls_shutdown(struct tls *t);

/*
 * tls_output() - Ciphertext to be sent; valid until the next call. After it was taken: tls_sent().
 */
size_t tls_output(struct tls *t, const char **ret);
void tls_sent(struct tls *t);

#endif
