/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_config.c - Command lines and environments of any words, one per line; lines that start with
 * '$' are variables.
 *
 * A refusal is one line; accepted values are within every range, and their lists end.
 */
#include "base/err.h"
#include "front/support/config.h"
#include "front/support/origin.h"
#include "fuzz.h"

#define WORDS_MAX 64

static bool between(uint64_t v, uint64_t min, uint64_t max)
{
	return v >= min && v <= max;
}

static size_t list_length(const char *const *list, size_t room)
{
	size_t n = 0;

	while (n < room && list[n])
		require(list[n++][0] != '\0');
	require(n < room);
	return n;
}

static void check_accepted(const struct config *c)
{
	const uint64_t mib = 1u << 20, day = 86400000;
	struct origin o;

	require(c->listen && c->socket && c->state && c->image && c->state[0] == '/');
	require(strcmp(c->socket, "none") == 0 || (c->socket[0] == '/' && strlen(c->socket) < 108));
	require(strcmp(c->listen, "none") != 0 || strcmp(c->socket, "none") != 0);
	require(!c->tls_cert == !c->tls_key);
	require(c->pool <= c->max_sandboxes && between(c->max_sandboxes, 1, 4000));
	require(between(c->idle_ms, 1000, 7 * day) && between(c->max_timeout_ms, 1000, day));
	require(between(c->timeout_ms, 1, c->max_timeout_ms) && c->drain_ms <= 3600000);
	require(between(c->memory_bytes, 16 * mib, mib * mib) &&
		between(c->disk_bytes, mib, mib * mib));
	require(between(c->cpu_milli, 10, 1024000) && between(c->pids, 1, 32768));
	require(between(c->max_output, 1, 64 * mib) && between(c->max_body, 1024, 1024 * mib));
	require(c->log_level <= LOG_LEVEL_ERROR);
	(void)list_length(c->preload, CONFIG_LIST_MAX);
	for (size_t i = 0; i < list_length(c->allow_hosts, CONFIG_LIST_MAX); i++)
		require(origin_parse_host(c->allow_hosts[i], &o) && o.port == 0);
	for (size_t i = 0; i < list_length(c->allow_origins, CONFIG_LIST_MAX); i++)
		require(origin_parse(c->allow_origins[i], &o));
	for (size_t i = 0; i < list_length(c->blocked_packages, CONFIG_BLOCKED_MAX); i++)
		require(strspn(c->blocked_packages[i], "abcdefghijklmnopqrstuvwxyz0123456789-") ==
			strlen(c->blocked_packages[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *argv[WORDS_MAX + 1] = { 0 },
	     *env[WORDS_MAX + 1] = { 0 };
	char verb[] = "serve", *save = NULL;
	size_t n_env = 0;
	int argc = 1;
	struct config c;
	struct err e = { 0 };

	argv[0] = verb;
	for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
		if (*s == '$' && n_env < WORDS_MAX)
			env[n_env++] = s + 1;
		else if (*s != '$' && argc < WORDS_MAX)
			argv[argc++] = s;
	}
	int r = config_parse(argc, argv, env, NULL, &c, &e);

	require(r <= 0 && (e.code < 0) == (r < 0) && (e.msg[0] != '\0') == (r < 0));
	require(!strchr(e.msg, '\n'));
	if (r == 0 && !c.help && !c.version)
		check_accepted(&c);
	config_free(&c);
	free(text);
	return 0;
}
