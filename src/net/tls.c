/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.c - TLS sessions over memory. See tls.h for the contract.
 *
 * Theory of operation: each session has two memory BIOs, one that we fill with the bytes of the
 * peer and one that OpenSSL fills with bytes for the peer. OpenSSL never waits: an empty input BIO
 * means "more is needed", the output BIO takes everything. So the socket's rules (non-blocking,
 * bounded queue, deadlines) are in one place for plain and encrypted connections alike.
 *
 * Bounds: the input BIO holds the bytes of one tls_feed(), since it is fed only when empty. The
 * output BIO holds one record or one flight of the handshake. A peer cannot make us repeat work:
 * no renegotiation, and OpenSSL itself limits key updates, empty records and warnings in a row.
 * Sessions are resumed by tickets only (no cache to fill), under a key that this process made and
 * forgets. Data before the end of the handshake (0-RTT) is not accepted: it could be replayed.
 *
 * A session that failed once is not used again, not even for close_notify: OpenSSL forbids it.
 */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

#define ROOTS_MAX (8u << 20)

struct tls_server {
	SSL_CTX *ctx;
};

struct tls_client {
	SSL_CTX *ctx;
	struct buf roots; /* certificates of this machine, parsed at the first connection */
};

struct tls {
	SSL *ssl;
	BIO *in, *out; /* owned by ssl */
	bool failed;
};

/* The innermost reason of the last failure. */
static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_get_error());

	ERR_clear_error();
	return text ? text : "unknown reason";
}

/* An encrypted key is an error: a daemon must not ask for a passphrase on its terminal. */
static int no_passphrase(char *buf, int size, int writing, void *arg)
{
	(void)writing;
	*(bool *)arg = true;
	if (size > 0)
		buf[0] = '\0';
	return -1;
}

static int pick_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
			 const unsigned char *in, unsigned int in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	(void)ssl;
	(void)arg;
	/* A client that offers only other protocols would misread the answers. */
	if (SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_len, ours, sizeof(ours) - 1,
				  in, in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* A context with the rules that all sessions have. */
static int new_context(const SSL_METHOD *method, SSL_CTX **ret, struct err *e)
{
	ERR_clear_error();
	SSL_CTX *ctx = *ret = SSL_CTX_new(method);

	if (!ctx)
		return err_say(e, -ENOMEM, "set up TLS: %s", reason());
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE |
					       SSL_OP_PRIORITIZE_CHACHA);
	/* Idle connections keep no 32 KiB of record buffers. */
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_alpn_select_cb(ctx, pick_protocol, NULL);
	/* TLS 1.2: forward secrecy and authenticated encryption only, as in 1.3. */
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_num_tickets(ctx, 1) != 1 || SSL_CTX_set_max_early_data(ctx, 0) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
		return err_say(e, -EIO, "set up TLS: %s", reason());
	return 0;
}

/* OpenSSL's message for a file that cannot be opened names neither file nor cause. */
static int check_readable(const char *path, const char *what, struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return err_set(e, -errno, "read the TLS %s '%s'", what, path);
	return 0;
}

static int load_files(SSL_CTX *ctx, const char *cert_file, const char *key_file, struct err *e)
{
	bool asked = false;
	int r = check_readable(cert_file, "certificate", e);

	if (r == 0)
		r = check_readable(key_file, "key", e);
	if (r < 0)
		return r;
	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	SSL_CTX_set_default_passwd_cb_userdata(ctx, &asked);
	if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
		return err_say(e, -EINVAL,
			       "the TLS certificate '%s' is not a PEM certificate chain: %s",
			       cert_file, reason());
	if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1) {
		if (asked)
			return err_say(e, -EINVAL,
				       "the TLS key '%s' is encrypted; 'openssl pkey -in %s -out "
				       "PLAIN' removes the passphrase",
				       key_file, key_file);
		/* The certificate is loaded, so the key of another one fails here. */
		return err_say(e, -EINVAL, "the TLS key '%s' is not the PEM key of '%s': %s",
			       key_file, cert_file, reason());
	}
	SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
	SSL_CTX_set_default_passwd_cb(ctx, NULL);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return err_say(e, -EINVAL, "the TLS key '%s' does not belong to '%s': %s", key_file,
			       cert_file, reason());
	return 0;
}

int tls_server_new(const char *cert_file, const char *key_file, struct tls_server **ret,
		   struct err *e)
{
	struct tls_server *t = calloc(1, sizeof(*t));
	int r = t ? new_context(TLS_server_method(), &t->ctx, e) :
		    err_set(e, -ENOMEM, "set up TLS");

	if (r == 0)
		r = load_files(t->ctx, cert_file, key_file, e);
	ERR_clear_error();
	if (r < 0) {
		tls_server_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

int tls_server_made(X509 *cert, EVP_PKEY *key, struct tls_server **ret)
{
	struct tls_server *t = calloc(1, sizeof(*t));

	if (t && new_context(TLS_server_method(), &t->ctx, NULL) == 0 &&
	    SSL_CTX_use_certificate(t->ctx, cert) == 1 &&
	    SSL_CTX_use_PrivateKey(t->ctx, key) == 1) {
		*ret = t;
		return 0;
	}
	ERR_clear_error();
	tls_server_free(t);
	return -ENOMEM;
}

static bool read_whole(const char *path, struct buf *out)
{
	_fd_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;

	return fd >= 0 && fd_read_buf(fd, out) == 0 && out->len > 0;
}

static void trust_text(SSL_CTX *ctx, const struct buf *text)
{
	BIO *bio = BIO_new_mem_buf(text->data, (int)text->len);
	X509 *cert;

	while (bio && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		(void)X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert);
		X509_free(cert);
	}
	(void)BIO_free(bio);
	ERR_clear_error();
}

/* The usual files, the most common first. Without any, no server is trusted. */
static void read_roots(struct buf *out)
{
	const char *const files[] = { getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt",
				      "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
				      X509_get_default_cert_file() };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (read_whole(files[i], out))
			return;
		else
			buf_clear(out);
}

static int trust_file(SSL_CTX *ctx, const char *ca_file, struct err *e)
{
	int r = check_readable(ca_file, "certificate", e);

	if (r == 0 && SSL_CTX_load_verify_file(ctx, ca_file) != 1)
		r = err_say(e, -EINVAL, "'%s' has no PEM certificate: %s", ca_file, reason());
	return r;
}

int tls_client_new(const char *ca_file, struct tls_client **ret, struct err *e)
{
	struct tls_client *c = calloc(1, sizeof(*c));
	int r = c ? new_context(TLS_client_method(), &c->ctx, e) :
		    err_set(e, -ENOMEM, "set up TLS");

	if (r == 0) {
		SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
		buf_init(&c->roots, ROOTS_MAX);
		read_roots(&c->roots);
		ERR_clear_error();
	}
	if (r == 0 && ca_file)
		r = trust_file(c->ctx, ca_file, e);
	ERR_clear_error();
	if (r < 0) {
		tls_client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void tls_client_free(struct tls_client *c)
{
	if (!c)
		return;
	SSL_CTX_free(c->ctx);
	buf_free(&c->roots);
	free(c);
}

void tls_server_free(struct tls_server *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	free(t);
}

static int new_session(SSL_CTX *ctx, struct tls **ret)
{
	struct tls *t = calloc(1, sizeof(*t));
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	if (!t || !in || !out || !(t->ssl = SSL_new(ctx))) {
		(void)BIO_free(in);
		(void)BIO_free(out);
		free(t);
		ERR_clear_error();
		return -ENOMEM;
	}
	/* An empty input means "not yet", not the end. */
	(void)BIO_set_mem_eof_return(in, -1);
	t->in = in;
	t->out = out;
	SSL_set_bio(t->ssl, in, out);
	*ret = t;
	return 0;
}

int tls_new(struct tls_server *server, struct tls **ret)
{
	int r = new_session(server->ctx, ret);

	if (r == 0)
		SSL_set_accept_state((*ret)->ssl);
	return r;
}

int tls_connect(struct tls_client *client, const char *host, struct tls **ret)
{
	static const unsigned char http[] = "\x08http/1.1";
	if (client->roots.len > 0)
		trust_text(client->ctx, &client->roots);
	buf_free(&client->roots);
	int r = new_session(client->ctx, ret);

	if (r < 0)
		return r;
	SSL *ssl = (*ret)->ssl;

	SSL_set_connect_state(ssl);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	unsigned char raw[16];
	bool named = inet_pton(AF_INET, host, raw) != 1 && inet_pton(AF_INET6, host, raw) != 1;

	/* A certificate may be for an address; the server name (SNI) is never one. */
	if (SSL_set1_host(ssl, host) == 1 && (!named || SSL_set_tlsext_host_name(ssl, host) == 1) &&
	    SSL_set_alpn_protos(ssl, http, sizeof(http) - 1) == 0)
		return 0;
	ERR_clear_error();
	tls_free(*ret);
	*ret = NULL;
	return -ENOMEM;
}

const char *tls_problem(const struct tls *t)
{
	long verdict = SSL_get_verify_result(t->ssl);

	return verdict == X509_V_OK ? "the TLS handshake failed" :
				      X509_verify_cert_error_string(verdict);
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

int tls_feed(struct tls *t, const void *data, size_t len)
{
	size_t written;

	if (len == 0)
		return 0;
	return BIO_write_ex(t->in, data, len, &written) == 1 && written == len ? 0 : -ENOMEM;
}

/* The result of a call that did not succeed: 0, -EAGAIN or -EPROTO. */
static int verdict(struct tls *t, int result)
{
	int why = SSL_get_error(t->ssl, result);

	ERR_clear_error();
	if (why == SSL_ERROR_WANT_READ)
		return -EAGAIN;
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	t->failed = true;
	return -EPROTO;
}

int tls_handshake(struct tls *t)
{
	if (t->failed)
		return -EPROTO;
	ERR_clear_error();
	int r = SSL_do_handshake(t->ssl);

	if (r == 1)
		return 0;
	r = verdict(t, r);
	return r == 0 ? -EPROTO : r; /* close_notify before the handshake was complete */
}

ssize_t tls_read(struct tls *t, void *data, size_t size)
{
	if (t->failed)
		return -EPROTO;
	ERR_clear_error();
	int r = SSL_read(t->ssl, data, size > INT_MAX ? INT_MAX : (int)size);

	return r > 0 ? r : verdict(t, r);
}

ssize_t tls_peek(struct tls *t)
{
	char byte;

	if (t->failed)
		return -EPROTO;
	ERR_clear_error();
	int r = SSL_peek(t->ssl, &byte, 1);

	return r > 0 ? r : verdict(t, r);
}

int tls_write(struct tls *t, const void *data, size_t len)
{
	if (t->failed)
		return -EPROTO;
	if (len == 0)
		return 0;
	if (len > TLS_RECORD_MAX)
		return -EINVAL;
	ERR_clear_error();
	int r = SSL_write(t->ssl, data, (int)len);

	if (r == (int)len)
		return 0;
	/* The output BIO takes everything, so there is nothing to wait for. */
	ERR_clear_error();
	t->failed = true;
	return -EPROTO;
}

void tls_shutdown(struct tls *t)
{
	if (t->failed || SSL_in_init(t->ssl) || SSL_get_shutdown(t->ssl) & SSL_SENT_SHUTDOWN)
		return;
	ERR_clear_error();
	if (SSL_shutdown(t->ssl) < 0)
		t->failed = true;
	ERR_clear_error();
}

size_t tls_output(struct tls *t, const char **ret)
{
	char *data;
	long len = BIO_get_mem_data(t->out, &data);

	*ret = data;
	return len > 0 ? (size_t)len : 0;
}

void tls_sent(struct tls *t)
{
	(void)BIO_reset(t->out);
}
