/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tls_conn.c - Connections through encryption: bytes, back-pressure, pauses between records,
 * and every way to end.
 */
#include "tls_kit.h"

/* Bytes */

TEST(large_both_ways)
{
	size_t len = 5 << 20;
	_mem_ char *data = pattern_new(len), *got = malloc(len);

	kit.config.queue_max = 8 << 20;
	kit_listen(-1, server);
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct rec *r;
		struct client cl = client_ready(versions[i], &r);
		size_t done = 0;

		while (done < len)
			done += (size_t)TRY(&cl, SSL_write(cl.ssl, data + done, (int)(len - done)));
		WAIT_FOR(r->in.len == len);
		assert_memory_equal(r->in.data, data, len);

		OWNER(r, assert_int_equal(conn_write(r->c, data, len), 0));
		assert_true(conn_queued(r->c) <= kit.config.queue_max);
		memset(got, 0, len);
		for (done = 0; done < len;)
			done += (size_t)TRY(&cl, SSL_read(cl.ssl, got + done, (int)(len - done)));
		assert_memory_equal(got, data, len);
		assert_int_equal(conn_queued(r->c), 0);
		client_end(&cl);
	}
}

TEST(queue_is_bounded)
{
	struct rec *r;
	_mem_ char *data = calloc(1, 32 << 20);
	int result = 0;

	kit.config.queue_max = 256 << 10;
	kit.config.queue_high = 128 << 10;
	kit_listen(-1, server);
	struct client cl = client_ready(TLS1_3_VERSION, &r);

	for (int i = 0; i < 10000 && result == 0; i++) {
		OWNER(r, result = conn_write(r->c, data, 20000));
		assert_true(conn_queued(r->c) <= kit.config.queue_max);
	}
	assert_int_equal(result, -ENOBUFS);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, -ENOBUFS);
	client_end(&cl);

	/* In one call: not all of it is encrypted before anybody looks. */
	cl = client_ready(TLS1_3_VERSION, &r);
	OWNER(r, assert_int_equal(conn_write(r->c, data, 32 << 20), -ENOBUFS));
	WAIT_FOR(r->closes);
	client_end(&cl);
}

static void pause_now(struct rec *r)
{
	conn_pause(r->c, true);
}

/* Several records come in one piece of the socket: a pause between them holds, nothing is lost. */
TEST(pause_between_records)
{
	struct rec *r;

	kit_listen(-1, server);
	struct client cl = client_ready(TLS1_3_VERSION, &r);

	r->on_data = pause_now;
	for (int i = 0; i < 10; i++)
		assert_int_equal(SSL_write(cl.ssl, &"0123456789"[i], 1), 1);
	for (int i = 1; i <= 10; i++) {
		WAIT_FOR(r->pieces == i);
		kit_run_ms(2);
		assert_int_equal(r->pieces, i);
		OWNER(r, conn_pause(r->c, false));
		OWNER(r, conn_pause(r->c, false));
	}
	assert_string_equal(buf_str(&r->in), "0123456789");
	/* Resumed and paused again within a round: nothing comes. */
	assert_int_equal(SSL_write(cl.ssl, "ab", 2), 2);
	assert_int_equal(SSL_write(cl.ssl, "c", 1), 1);
	WAIT_FOR(r->pieces == 11);
	OWNER(r, conn_pause(r->c, false));
	OWNER(r, conn_pause(r->c, true));
	kit_run_ms(5);
	assert_int_equal(r->pieces, 11);
	OWNER(r, conn_pause(r->c, false));
	WAIT_FOR(r->pieces == 12);
	client_end(&cl);
}

static void close_now(struct rec *r)
{
	conn_close(r->c, -ECANCELED);
}

TEST(close_between_records)
{
	struct rec *r;

	kit_listen(-1, server);
	struct client cl = client_ready(TLS1_3_VERSION, &r);

	r->on_data = close_now;
	assert_int_equal(SSL_write(cl.ssl, "a", 1), 1);
	assert_int_equal(SSL_write(cl.ssl, "b", 1), 1);
	WAIT_FOR(r->closes);
	assert_int_equal(r->pieces, 1);
	assert_int_equal(r->why, -ECANCELED);
	client_end(&cl);
}

/* Ends */

TEST(close_notify_from_us)
{
	char got[8];

	kit_listen(-1, server);
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		for (int abrupt = 0; abrupt < 2; abrupt++) {
			struct rec *r;
			struct client cl = client_ready(versions[i], &r);

			OWNER(r, assert_int_equal(conn_write(r->c, "last", 4), 0));
			if (abrupt)
				OWNER(r, conn_close(r->c, 0));
			else
				OWNER(r, conn_finish(r->c));
			assert_int_equal(TRY(&cl, SSL_read(cl.ssl, got, 8)), 4);
			assert_memory_equal(got, "last", 4);
			assert_int_equal(TRY(&cl, SSL_read(cl.ssl, got, 8)), 0);
			assert_int_equal(cl.failed, SSL_ERROR_ZERO_RETURN);
			client_end(&cl);
			WAIT_FOR(r->closes);
			assert_int_equal(r->why, 0);
		}
	}
}

/* The client closes its direction, and still gets its answer. */
TEST(half_close)
{
	kit_listen(-1, server);
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct rec *r;
		struct client cl = client_ready(versions[i], &r);
		char got[8];

		assert_int_equal(SSL_write(cl.ssl, "ask", 3), 3);
		assert_int_equal(SSL_shutdown(cl.ssl), 0);
		WAIT_FOR(r->eofs);
		assert_string_equal(buf_str(&r->in), "ask");
		kit_assert_idle(40);
		OWNER(r, assert_int_equal(conn_write(r->c, "answer", 6), 0));
		OWNER(r, conn_finish(r->c));
		assert_int_equal(TRY(&cl, SSL_read(cl.ssl, got, 8)), 6);
		assert_memory_equal(got, "answer", 6);
		client_end(&cl);
		WAIT_FOR(r->closes);
		assert_int_equal(r->why, 0);
		assert_int_equal(r->eofs, 1);
	}
}

/* A stream that just stops was cut: never an orderly end. */
TEST(cut)
{
	kit_listen(-1, server);
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		for (int paused = 0; paused < 2; paused++) {
			struct rec *r;
			struct client cl = client_ready(versions[i], &r);

			read_ticket(&cl, r);
			OWNER(r, conn_pause(r->c, paused));
			client_end(&cl);
			WAIT_FOR(r->closes);
			assert_int_equal(r->why, -ECONNRESET);
			assert_int_equal(r->eofs, 0);
		}
	}
}

/* Paused: a client that sends its close and ends is noticed, although the close is encrypted. */
TEST(paused_goodbye)
{
	kit_listen(-1, server);
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct rec *r;
		struct client cl = client_ready(versions[i], &r);

		read_ticket(&cl, r);
		OWNER(r, conn_pause(r->c, true));
		assert_int_equal(SSL_shutdown(cl.ssl), 0);
		client_end(&cl);
		WAIT_FOR(r->eofs);
		kit_assert_idle(40);
		OWNER(r, conn_close(r->c, 0));
		WAIT_FOR(r->closes);
	}
}

TEST(paused_goodbye_behind_data)
{
	struct rec *r;
	size_t len = 100 << 10;
	_mem_ char *data = pattern_new(len);

	kit_listen(-1, server);
	struct client cl = client_ready(TLS1_3_VERSION, &r);

	OWNER(r, conn_pause(r->c, true));
	for (size_t done = 0; done < len;)
		done += (size_t)TRY(&cl, SSL_write(cl.ssl, data + done, (int)(len - done)));
	assert_int_equal(SSL_shutdown(cl.ssl), 0);
	assert_int_equal(shutdown(cl.fd, SHUT_WR), 0);
	kit_assert_idle(60);
	assert_int_equal(r->eofs + r->pieces, 0);
	OWNER(r, conn_pause(r->c, false));
	WAIT_FOR(r->eofs);
	assert_int_equal(r->in.len, len);
	assert_memory_equal(r->in.data, data, len);
	client_end(&cl);
}

TEST(key_update)
{
	struct rec *r;
	char got[4];

	kit_listen(-1, server);
	struct client cl = client_ready(TLS1_3_VERSION, &r);

	for (int i = 0; i < 5; i++) {
		assert_int_equal(SSL_key_update(cl.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(TRY(&cl, SSL_write(cl.ssl, "ping", 4)), 4);
		WAIT_FOR(r->in.len == 4);
		buf_clear(&r->in);
		OWNER(r, assert_int_equal(conn_write(r->c, "pong", 4), 0));
		assert_int_equal(TRY(&cl, SSL_read(cl.ssl, got, 4)), 4);
		assert_memory_equal(got, "pong", 4);
	}
	client_end(&cl);
}

/* Broken records after the handshake end the connection, as a failure. */
TEST(damaged_record)
{
	static const char record[] = "\x17\x03\x03\x00\x1e not a record at all, but long";

	kit_listen(-1, server);
	for (int paused = 0; paused < 2; paused++) {
		struct rec *r;
		struct client cl = client_ready(TLS1_3_VERSION, &r);

		OWNER(r, conn_pause(r->c, paused));
		assert_int_equal(send(cl.fd, record, sizeof(record) - 1, 0), sizeof(record) - 1);
		assert_int_equal(shutdown(cl.fd, SHUT_WR), 0);
		WAIT_FOR(r->closes);
		assert_int_equal(r->why, -EPROTO);
		assert_int_equal(r->pieces, 0);
		client_end(&cl);
	}
}
