/* SPDX-License-Identifier: Apache-2.0 */
/* tls_kit.h - A certificate made for the test, a TLS server with it, and OpenSSL's own client. */
#ifndef CAISSON_TESTS_TLS_KIT_H
#define CAISSON_TESTS_TLS_KIT_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/tls.h"
#include "net_kit.h"

static char dir[] = "/tmp/caisson-tls-XXXXXX";
static char cert_file[64], key_file[64], locked_file[64], other_file[64], bad_file[64];
static struct tls_server *server;

static inline FILE *create(char *path, size_t size, const char *name)
{
	(void)snprintf(path, size, "%s/%s", dir, name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	return f;
}

/* A certificate that its own key signed, and keys of three kinds. */
static inline void make_files(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	assert_true(key && other && cert);
	assert_int_equal(X509_set_version(cert, 2), 1);
	assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(cert), 1), 1);
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), -60));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
	assert_int_equal(X509_set_pubkey(cert, key), 1);
	X509_NAME *name = X509_get_subject_name(cert);

	assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
						    (const unsigned char *)"localhost", -1, -1, 0),
			 1);
	assert_int_equal(X509_set_issuer_name(cert, name), 1);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);

	FILE *f = create(cert_file, sizeof(cert_file), "cert.pem");

	assert_int_equal(PEM_write_X509(f, cert), 1);
	assert_int_equal(fclose(f), 0);
	f = create(key_file, sizeof(key_file), "key.pem");
	assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	assert_int_equal(fclose(f), 0);
	f = create(other_file, sizeof(other_file), "other.pem");
	assert_int_equal(PEM_write_PrivateKey(f, other, NULL, NULL, 0, NULL, NULL), 1);
	assert_int_equal(fclose(f), 0);
	f = create(locked_file, sizeof(locked_file), "locked.pem");
	assert_int_equal(PEM_write_PrivateKey(f, key, EVP_aes_128_cbc(),
					      (const unsigned char *)"secret", 6, NULL, NULL),
			 1);
	assert_int_equal(fclose(f), 0);
	f = create(bad_file, sizeof(bad_file), "bad.pem");
	assert_true(fputs("no PEM at all\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
	X509_free(cert);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
}

static inline int group_setup(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	make_files();
	int r = tls_server_new(cert_file, key_file, &server, &e);

	assert_string_equal(e.msg, "");
	return r;
}

static inline int group_teardown(void **state)
{
	const char *files[] = { cert_file, key_file, other_file, locked_file, bad_file };

	(void)state;
	tls_server_free(server);
	tls_server_free(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		(void)unlink(files[i]);
	return rmdir(dir);
}

struct unit_fixture unit_group = { group_setup, group_teardown };

/* The client */

struct client {
	int fd;
	SSL *ssl;
	int failed; /* the code of SSL_get_error() that is neither want-read nor want-write */
};

/* Run one call of the client until it has a result; > 0, or 0 with failed set. */
#define TRY(cl, call)                                                                              \
	({                                                                                         \
		int try_ = 0;                                                                      \
		(cl)->failed = 0;                                                                  \
		WAIT_FOR((ERR_clear_error(), (try_ = (call)) > 0) || client_failed((cl), try_));   \
		try_ > 0 ? try_ : 0;                                                               \
	})

static inline bool client_failed(struct client *cl, int result)
{
	int why = SSL_get_error(cl->ssl, result);

	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return false;
	cl->failed = why;
	return true;
}

static inline struct client client_begin(int min, int max, const char *alpn)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct client cl = { .fd = client_connect() };

	assert_non_null(ctx);
	SSL_CTX_set_security_level(ctx, 0); /* so that it may offer what must be refused */
	assert_int_equal(SSL_CTX_set_cipher_list(ctx, "ALL:@SECLEVEL=0"), 1);
	assert_int_equal(SSL_CTX_set_min_proto_version(ctx, min), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, max), 1);
	assert_int_equal(SSL_CTX_load_verify_file(ctx, cert_file), 1);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	cl.ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	assert_non_null(cl.ssl);
	(void)SSL_set_mode(cl.ssl,
			   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (alpn)
		assert_int_equal(SSL_set_alpn_protos(cl.ssl, (const unsigned char *)alpn,
						     (unsigned int)strlen(alpn)),
				 0);
	assert_int_equal(SSL_set_fd(cl.ssl, cl.fd), 1);
	return cl;
}

static inline void client_end(struct client *cl)
{
	SSL_free(cl->ssl);
	fd_close(cl->fd);
	ERR_clear_error();
}

/* A client whose handshake is complete, and what the server saw of it. */
static inline struct client client_ready(int version, struct rec **ret)
{
	struct client cl = client_begin(version, version, NULL);
	size_t n = kit.n_recs;

	assert_int_equal(TRY(&cl, SSL_connect(cl.ssl)), 1);
	WAIT_FOR(kit.n_recs == n + 1);
	*ret = &kit.recs[n];
	return cl;
}

/* Have the client read all there is: with an unread ticket its close() would be a reset. */
static inline void read_ticket(struct client *cl, struct rec *r)
{
	char byte;

	OWNER(r, assert_int_equal(conn_write(r->c, "x", 1), 0));
	assert_int_equal(TRY(cl, SSL_read(cl->ssl, &byte, 1)), 1);
}

static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };

#endif
