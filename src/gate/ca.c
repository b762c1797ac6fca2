/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca.c - The certificate authority of one sandbox: its key is made in the gate, never leaves it,
 * and ends with the sandbox.
 *
 * Only programs in that sandbox trust it. It signs a certificate for each host whose requests the
 * gate reads, when the certificate is first needed.
 *
 * There are two keys on P-256, one that signs and one that the certificates of all hosts share: an
 * attacker who has either one has taken over this process. Certificates carry the extensions that
 * strict verifiers require (key identifiers, critical basic constraints) and are valid from a day
 * before for a year. The authority may sign no other authority.
 */
#include "gate/bindings.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/tls.h"

#define HOSTS_MAX 64u
#define DAY_S 86400L

struct leaf {
	char *host;
	struct tls_server *server;
};

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
	struct leaf leaves[HOSTS_MAX];
	size_t n, oldest;
};

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool good = ext && X509_add_ext(cert, ext, -1) == 1;

	X509_EXTENSION_free(ext);
	return good;
}

static bool set_serial(X509 *cert)
{
	unsigned char bytes[16];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (unsigned char)(bytes[0] & 0x7f) | 0x40; /* positive, and of one length */
	BIGNUM *n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	bool good = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));

	BN_free(n);
	return good;
}

static bool set_name(X509_NAME *name, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Caisson",
					  -1, -1, 0) == 1 &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)text,
					  -1, -1, 0) == 1;
}

/* Everything but the extensions and the signature. */
static X509 *begin(EVP_PKEY *key, const char *name)
{
	X509 *cert = X509_new();

	if (cert && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_S) &&
	    X509_gmtime_adj(X509_getm_notAfter(cert), 365 * DAY_S) &&
	    X509_set_pubkey(cert, key) == 1 && set_name(X509_get_subject_name(cert), name))
		return cert;
	X509_free(cert);
	return NULL;
}

static X509 *make_authority(EVP_PKEY *key)
{
	X509 *cert = begin(key, "Caisson sandbox CA");

	if (cert && X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1 &&
	    add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	    add_extension(cert, cert, NID_subject_key_identifier, "hash") &&
	    add_extension(cert, cert, NID_authority_key_identifier, "keyid:always") &&
	    X509_sign(cert, key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

/* A common name has 64 characters at most, so the host is in the alternative name alone. */
static X509 *make_leaf(struct ca *c, const char *host)
{
	char names[300];
	X509 *cert = begin(c->leaf_key, "Caisson sandbox gate");

	(void)snprintf(names, sizeof(names), "DNS:%s", host);
	if (cert && X509_set_issuer_name(cert, X509_get_subject_name(c->cert)) == 1 &&
	    add_extension(cert, c->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(cert, c->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(cert, c->cert, NID_ext_key_usage, "serverAuth") &&
	    add_extension(cert, c->cert, NID_subject_key_identifier, "hash") &&
	    add_extension(cert, c->cert, NID_authority_key_identifier, "keyid:always") &&
	    add_extension(cert, c->cert, NID_subject_alt_name, names) &&
	    X509_sign(cert, c->key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

int ca_new(struct ca **ret)
{
	struct ca *c = calloc(1, sizeof(*c));

	if (c) {
		c->key = EVP_EC_gen("P-256");
		c->leaf_key = EVP_EC_gen("P-256");
		c->cert = c->key && c->leaf_key ? make_authority(c->key) : NULL;
	}
	ERR_clear_error();
	if (!c || !c->cert) {
		ca_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

static void drop(struct leaf *l)
{
	tls_server_free(l->server);
	free(l->host);
	*l = (struct leaf){ 0 };
}

void ca_free(struct ca *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		drop(&c->leaves[i]);
	X509_free(c->cert);
	EVP_PKEY_free(c->leaf_key);
	EVP_PKEY_free(c->key);
	free(c);
}

int ca_pem(const struct ca *c, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text = NULL;
	int r = -ENOMEM;

	if (bio && PEM_write_bio_X509(bio, c->cert) == 1) {
		long n = BIO_get_mem_data(bio, &text);

		r = buf_append(out, text, (size_t)n);
	}
	(void)BIO_free(bio);
	ERR_clear_error();
	return r;
}

struct tls_server *ca_server(struct ca *c, const char *host)
{
	struct leaf l = { 0 };

	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->leaves[i].host, host) == 0)
			return c->leaves[i].server;
	X509 *cert = make_leaf(c, host);

	ERR_clear_error();
	l.host = strdup(host);
	if (!cert || !l.host || tls_server_made(cert, c->leaf_key, &l.server) < 0) {
		X509_free(cert);
		drop(&l);
		return NULL;
	}
	X509_free(cert);
	size_t at = c->n < HOSTS_MAX ? c->n++ : c->oldest++ % HOSTS_MAX;

	drop(&c->leaves[at]);
	c->leaves[at] = l;
	return l.server;
}
