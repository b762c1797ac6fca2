/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tls.c - Negotiation and refusals: certificates, versions, protocols,
 * resumption, bytes that are no TLS, and handshakes that do not end.
 */
#include "tls_kit.h"

/* Files */

static void expect_error(const char *cert, const char *key, int code, const char *part)
{
	struct tls_server *none = NULL;
	struct err e = { 0 };

	assert_int_equal(tls_server_new(cert, key, &none, &e), code);
	assert_null(none);
	if (!strstr(e.msg, part))
		fail_msg("'%s' is not in '%s'", part, e.msg);
	assert_int_equal(ERR_peek_error(), 0);
}

TEST(files)
{
	expect_error("/nonexistent/c", key_file, -ENOENT, "certificate '/nonexistent/c'");
	expect_error(cert_file, "/nonexistent/k", -ENOENT, "key '/nonexistent/k'");
	expect_error(bad_file, key_file, -EINVAL, "is not a PEM certificate chain");
	expect_error(key_file, key_file, -EINVAL, "is not a PEM certificate chain");
	expect_error(cert_file, bad_file, -EINVAL, "is not the PEM key");
	expect_error(cert_file, other_file, -EINVAL, "key values mismatch");
	expect_error(cert_file, locked_file, -EINVAL, "is encrypted");
	expect_error(dir, key_file, -EINVAL, "is not a PEM certificate chain");
}

/* Negotiation */

TEST(versions_and_protocol)
{
	kit_listen(-1, server);
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct client cl = client_begin(versions[i], versions[i], "\x02h2\x08http/1.1");
		const unsigned char *chosen;
		unsigned int len;

		assert_int_equal(TRY(&cl, SSL_connect(cl.ssl)), 1);
		assert_int_equal(SSL_version(cl.ssl), versions[i]);
		SSL_get0_alpn_selected(cl.ssl, &chosen, &len);
		assert_int_equal(len, 8);
		assert_memory_equal(chosen, "http/1.1", 8);
		const SSL_CIPHER *cipher = SSL_get_current_cipher(cl.ssl);

		assert_true(SSL_CIPHER_is_aead(cipher));
		WAIT_FOR(kit.n_recs == i + 1);
		assert_true(conn_is_tls(kit.recs[i].c));
		assert_string_equal(conn_peer(kit.recs[i].c)->host, "127.0.0.1");
		client_end(&cl);
	}
}

static void expect_no_handshake(struct client cl)
{
	assert_int_equal(TRY(&cl, SSL_connect(cl.ssl)), 0);
	assert_int_equal(cl.failed, SSL_ERROR_SSL);
	assert_true(ERR_GET_REASON(ERR_peek_error()) > SSL_AD_REASON_OFFSET); /* an alert, no cut */
	client_end(&cl);
	WAIT_FOR(listener_count(kit.ls) == 0);
	assert_int_equal(kit.n_recs, 0); /* no layer above was notified */
}

TEST(refused_handshakes)
{
	kit_listen(-1, server);
	expect_no_handshake(client_begin(TLS1_VERSION, TLS1_1_VERSION, NULL));
	expect_no_handshake(client_begin(TLS1_2_VERSION, TLS1_3_VERSION, "\x02h2"));

	/* TLS 1.2 without forward secrecy, and without authenticated encryption. */
	static const char *const ciphers[] = { "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA" };

	for (size_t i = 0; i < ARRAY_SIZE(ciphers); i++) {
		struct client cl = client_begin(TLS1_2_VERSION, TLS1_2_VERSION, NULL);

		assert_int_equal(SSL_set_cipher_list(cl.ssl, ciphers[i]), 1);
		expect_no_handshake(cl);
	}
}

TEST(renegotiation_is_refused)
{
	struct rec *r;
	char byte;

	kit_listen(-1, server);
	struct client cl = client_ready(TLS1_2_VERSION, &r);

	assert_int_equal(SSL_renegotiate(cl.ssl), 1);
	(void)SSL_do_handshake(cl.ssl);
	assert_int_equal(TRY(&cl, SSL_read(cl.ssl, &byte, 1)), 0);
	assert_int_equal(cl.failed, SSL_ERROR_SSL);
	client_end(&cl);
	WAIT_FOR(r->closes || r->eofs);
}

/* A session is resumed by its ticket, within one server; another one does not know the ticket. */
static bool reconnect(SSL_SESSION *session)
{
	struct client cl = client_begin(TLS1_3_VERSION, TLS1_3_VERSION, NULL);

	assert_int_equal(SSL_set_session(cl.ssl, session), 1);
	assert_int_equal(TRY(&cl, SSL_connect(cl.ssl)), 1);
	bool reused = SSL_session_reused(cl.ssl);

	client_end(&cl);
	return reused;
}

TEST(tickets_end_with_the_server)
{
	struct rec *r;

	kit_listen(-1, server);
	struct client cl = client_ready(TLS1_3_VERSION, &r);

	read_ticket(&cl, r);
	SSL_SESSION *session = SSL_get1_session(cl.ssl);

	assert_true(SSL_SESSION_is_resumable(session));
	assert_int_equal(SSL_SESSION_get_max_early_data(session), 0);
	assert_true(reconnect(session));
	client_end(&cl);

	/* The same certificate in a new server, as after a restart. */
	struct tls_server *restarted;
	struct listener *first = kit.ls;

	assert_int_equal(tls_server_new(cert_file, key_file, &restarted, NULL), 0);
	kit_listen(-1, restarted);
	assert_false(reconnect(session));
	listener_free(first);
	listener_free(kit.ls);
	kit.ls = NULL;
	tls_server_free(restarted);
	SSL_SESSION_free(session);
}

/* Bytes that are no TLS */

static void expect_thrown_out(const char *data, size_t len)
{
	int fd = client_connect();
	char got[256];
	ssize_t n = -1;

	(void)!send(fd, data, len, MSG_NOSIGNAL);
	WAIT_FOR((n = recv(fd, got, sizeof(got), 0)) >= 0 || errno == ECONNRESET);
	/* At most an alert: type 21, version 3.x, two bytes. */
	if (n > 0) {
		assert_int_equal(n, 7);
		assert_int_equal(got[0], 21);
	}
	WAIT_FOR(listener_count(kit.ls) == 0);
	fd_close(fd);
	assert_int_equal(kit.n_recs, 0);
}

TEST(plaintext_is_refused)
{
	static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	_mem_ char *big = malloc(1 << 20);

	kit_listen(-1, server);
	expect_thrown_out(get, sizeof(get) - 1);
	memset(big, 'A', 1 << 20);
	expect_thrown_out(big, 1 << 20);
	memset(big, 0, 1 << 20);
	expect_thrown_out(big, 1 << 20);
	memset(big, 0x16, 1 << 20);
	expect_thrown_out(big, 1 << 20);
}

/* A hello that announces far more than it may: refused before it is collected. */
TEST(huge_hello)
{
	_mem_ char *data = calloc(1, 4 << 20);
	size_t n = 0;

	kit_listen(-1, server);
	while (n + 16389 < 4 << 20) {
		memcpy(data + n, "\x16\x03\x01\x40\x00", 5);
		n += 5 + 16384;
	}
	memcpy(data + 5, "\x01\xff\xff\xff", 4);
	expect_thrown_out(data, n);
}

/* Deterministic damage to a real hello: refused or ignored, never more. */
TEST(damaged_hello)
{
	unsigned char hello[1024];
	int pair[2];

	kit_listen(-1, server);
	struct client cl = client_begin(TLS1_2_VERSION, TLS1_3_VERSION, "\x08http/1.1");

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(SSL_set_fd(cl.ssl, pair[0]), 1);
	assert_int_equal(SSL_connect(cl.ssl), -1);
	ssize_t len = recv(pair[1], hello, sizeof(hello), 0);

	assert_true(len > 100);
	client_end(&cl);
	fd_close(pair[0]);
	fd_close(pair[1]);
	for (ssize_t i = 0; i < len; i++) {
		int fd = client_connect();

		hello[i] ^= (unsigned char)(1 + i % 255);
		(void)!send(fd, hello, (size_t)len, MSG_NOSIGNAL);
		hello[i] ^= (unsigned char)(1 + i % 255);
		kit_run_ms(1);
		fd_close(fd);
	}
	WAIT_FOR(listener_count(kit.ls) == 0);
	assert_int_equal(kit.n_recs, 0);
}

/* A handshake has ten seconds. The test moves the clock's hand. */
TEST(handshake_deadline)
{
	kit_listen(-1, server);
	_fd_ int fd = client_connect();
	char byte;

	assert_int_equal(send(fd, "\x16\x03\x01", 3, 0), 3);
	WAIT_FOR(listener_count(kit.ls) == 1);
	kit_run_ms(5);
	assert_int_equal(kit.loop.n_timers, 1);
	struct timer *t = kit.loop.heap[0];
	uint64_t now = clock_now_ns();

	assert_true(t->at_ns > now + 5 * CLOCK_NS_PER_S);
	assert_true(t->at_ns <= now + 10 * CLOCK_NS_PER_S);
	timer_set(&kit.loop, t, now);
	WAIT_FOR(listener_count(kit.ls) == 0);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_int_equal(kit.n_recs, 0);

	/* Complete in time: no deadline of ours is left. */
	struct rec *r;
	struct client cl = client_ready(TLS1_3_VERSION, &r);

	assert_int_equal(kit.loop.n_timers, 0);
	client_end(&cl);
}

/* Caps count those that are still shaking hands. */
TEST(cap_counts_handshakes)
{
	kit.config.max_conns = 2;
	kit_listen(-1, server);
	_fd_ int a = client_connect(), b = client_connect(), c = client_connect();

	WAIT_FOR(listener_refused(kit.ls) == 1);
	assert_int_equal(listener_count(kit.ls), 2);
	(void)a;
	(void)b;
	(void)c;
}

TEST(unwanted_after_handshake)
{
	char byte;

	kit.refuse = true;
	kit_listen(-1, server);
	struct client cl = client_begin(TLS1_3_VERSION, TLS1_3_VERSION, NULL);

	assert_int_equal(TRY(&cl, SSL_connect(cl.ssl)), 1);
	assert_int_equal(TRY(&cl, SSL_read(cl.ssl, &byte, 1)), 0);
	WAIT_FOR(listener_count(kit.ls) == 0);
	client_end(&cl);
}
