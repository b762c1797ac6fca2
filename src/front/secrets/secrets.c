/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.c - Load secrets, give them to sandboxes, and tell the gate which are bound.
 *
 * The gate supervisor reads the sources, and the front gets the blind half: names, owners and hosts
 * of all secrets, values of those alone that are not tied to hosts. A value that a sandbox gets is
 * wiped when the sandbox ends.
 */
#include "front/secrets/secrets.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/cell/cell.h"
#include "front/gate/gate_link.h"
#include "front/policy/egress_rules.h"
#include "front/policy/secret_use.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/secrets/trust.h"
#include "front/support/config.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "ledger/ledger.h"
#include "vault/index.h"

/* ---- where they come from ------------------------------------------------------------------ */

static int unseal(struct vault *v, int fd, struct err *e)
{
	int r = vault_init(v, true);

	return r < 0 ? err_set(e, r, "hold secrets") : vault_unseal(v, fd, e);
}

int secrets_load(struct secrets *s, struct err *e)
{
	_fd_ int blind = -1;

	s->roots = trust_roots();
	int r = gate_secrets(s->gate, &blind, e);

	return r < 0 || blind < 0 ? r : unseal(&s->vault, blind, e);
}

/* Sandboxes keep the values that they have; the gate looks bound secrets up at each request. */
void secrets_again(struct gate_link *gate, int blind, const struct err *why)
{
	struct secrets *secrets = gate->secrets;
	struct vault fresh = { 0 };
	struct err e = { 0 };

	if (!why && (blind < 0 || unseal(&fresh, blind, &e) < 0))
		why = &e;
	metric_add(why ? M_SECRETS_REJECTED : M_SECRETS_RELOADS, 1);
	if (why) {
		vault_free(&fresh);
		log_event(LOG_LEVEL_ERROR, "secrets_refused", F_STR("why", why->msg),
			  F_STR("what", "the secrets before them stay in force"));
	} else {
		vault_free(&secrets->vault);
		secrets->vault = fresh;
		log_event(LOG_LEVEL_INFO, "secrets", F_STR("how", "reload"),
			  F_UINT("secrets", fresh.n));
	}
	if (ledger_record(secrets->daemon->ledger, &e, why ? "secrets.reject" : "secrets.load",
			  NULL, NULL, L_UINT("secrets", secrets->vault.n)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "secrets.load"),
			  F_STR("why", e.msg));
}

void secrets_reload(struct secrets *secrets)
{
	const struct config *c = &secrets->daemon->config;

	if (c->secrets_file || c->secrets_env || c->secrets_command)
		gate_reload(secrets->gate);
}

void secrets_free(struct secrets *s)
{
	vault_free(&s->vault);
	s->roots = fd_close(s->roots);
}

/* ---- for a sandbox ------------------------------------------------------------------------- */

static bool make_placeholder(char out[SECRETS_PLACEHOLDER_MAX])
{
	unsigned char random[16];
	size_t n = sizeof(SECRETS_PLACEHOLDER) - 1;

	if (RAND_bytes(random, sizeof(random)) != 1)
		return false;
	memcpy(out, SECRETS_PLACEHOLDER, n);
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(out + n + 2 * i, 3, "%02x", random[i]);
	return true;
}

static bool may_reach(const json_t *egress, const char *host)
{
	static struct egress_rules rules;
	size_t len = strlen(host);

	if (egress_rules(egress, &rules, NULL) < 0)
		return false;
	for (size_t i = 0; i < rules.n_rules; i++) {
		const struct gate_rule *r = &rules.rules[i];
		size_t n = strlen(r->host);

		if (r->flags & GATE_WILD ? len > n + 1 && host[len - n - 1] == '.' &&
						   strcmp(host + len - n, r->host) == 0 :
					   strcmp(host, r->host) == 0)
			return true;
	}
	return false;
}

static int give_one(struct sandbox *s, const char *text, struct refusal *r)
{
	struct secret_use u;
	char placeholder[SECRETS_PLACEHOLDER_MAX] = "";
	const struct secret *have = NULL;
	const char *value = placeholder;

	/* Credentials of package indexes are for fetchers alone. */
	if (secret_use_parse(text, &u) && (s->spec.fetcher || !index_key_reserved(u.name)))
		have = vault_find(&s->sandboxes->hooks->secrets.part->vault, u.name, s->owner);
	if (!have)
		return refusal_set(r, REFUSAL_INVALID, "unknown_secret", "secrets",
				   "ask the operator of this daemon for it",
				   "there is no secret '%.80s' for you", text);
	if (!u.host[0] && have->hosts)
		return refusal_set(r, REFUSAL_INVALID, "invalid_value", "secrets",
				   "bind it to a host: NAME@HOST",
				   "the secret '%.64s' can only be used bound to a host", u.name);
	if (u.host[0] && !vault_lists(have->hosts, u.host))
		return refusal_set(r, REFUSAL_INVALID, "invalid_value", "secrets",
				   "bind it to one of its own hosts",
				   "'%.80s': this secret is not for that host", text);
	if (u.host[0] && !may_reach(s->spec.egress, u.host))
		return refusal_set(r, REFUSAL_INVALID, "invalid_value", "secrets",
				   "add the host to 'egress' as well",
				   "'%.80s': the sandbox may not reach that host", text);
	if (!u.host[0])
		value = have->value;
	else if (json_object_get(s->vars, u.name))
		return 0; /* a second host of the same secret */
	else if (!make_placeholder(placeholder))
		return refusal_set(r, REFUSAL_INVALID, "internal", "secrets", NULL, "%s",
				   "the system has no random numbers");
	if (json_object_set_new(s->vars, u.name, json_string(value)) < 0)
		return refusal_no_memory(r);
	return 0;
}

int secrets_give(struct sandbox *s, struct refusal *ret_why)
{
	size_t i;
	json_t *v;

	bool look = secrets_look(s, s->spec.egress);

	secrets_take(s);
	if (json_array_size(s->spec.secrets) == 0 && !look) {
		s->vars = json_incref(s->spec.env);
		return 0;
	}
	s->vars = s->spec.env ? json_deep_copy(s->spec.env) : json_object();
	json_array_foreach(s->spec.secrets, i, v)
	{
		if (give_one(s, json_string_value(v), ret_why) < 0) {
			secrets_take(s);
			return -1;
		}
	}
	if (look)
		trust_vars(s->vars);
	return 0;
}

/* ---- for the gate -------------------------------------------------------------------------- */

size_t secrets_binds(const struct sandbox *s, struct gate_bind *ret)
{
	struct secret_use u;
	size_t i, n = 0;
	json_t *v;

	json_array_foreach(s->spec.secrets, i, v)
	{
		if (!secret_use_parse(json_string_value(v), &u) || !u.host[0] ||
		    n == GATE_BINDS_MAX)
			continue;
		const char *placeholder = json_string_value(json_object_get(s->vars, u.name));
		struct gate_bind *b = &ret[n++];

		*b = (struct gate_bind){ 0 };
		(void)snprintf(b->host, sizeof(b->host), "%s", u.host);
		(void)snprintf(b->name, sizeof(b->name), "%s", u.name);
		(void)snprintf(b->owner, sizeof(b->owner), "%s", s->owner);
		(void)snprintf(b->placeholder, sizeof(b->placeholder), "%s",
			       placeholder ? placeholder : "");
	}
	return n;
}

void secrets_trust(struct sandbox *s)
{
	if (json_object_get(s->vars, "SSL_CERT_FILE"))
		return;
	if (s->vars == s->spec.env) {
		s->vars = s->spec.env ? json_deep_copy(s->spec.env) : json_object();
		json_decref(s->spec.env); /* that of vars; the spec has its own */
	}
	trust_vars(s->vars);
	if (s->cell)
		s->cell->env = s->vars;
	sandbox_keep_vars(s);
}

bool secrets_look(const struct sandbox *s, const json_t *egress)
{
	size_t i;
	json_t *v;

	json_array_foreach(s->spec.secrets, i,
			   v) if (strchr(json_string_value(v), '@')) return true;
	json_array_foreach((json_t *)egress, i,
			   v) if (strpbrk(json_string_value(v), " /")) return true;
	return false;
}

void secrets_take(struct sandbox *s)
{
	const char *name;
	json_t *v;

	if (s->vars != s->spec.env)
		json_object_foreach(s->vars, name, v)
			explicit_bzero((char *)json_string_value(v), json_string_length(v));
	json_decref(s->vars);
	s->vars = NULL;
}
