/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - Opening, finding and closing the ports of a sandbox. */
#include "front/ports/ports.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "front/ports/port_head.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/time_text.h"

struct port *port_find(const struct sandbox *s, unsigned int number)
{
	struct port *p = s->ports;

	while (p && p->number != number)
		p = p->next;
	return p;
}

static bool make_token(char out[PORT_TOKEN_LEN + 1])
{
	unsigned char random[PORT_TOKEN_LEN / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(out + 2 * i, 3, "%02x", random[i]);
	OPENSSL_cleanse(random, sizeof(random));
	return true;
}

static bool may_open(const struct sandbox *s, struct refusal *why)
{
	size_t n = 0;

	for (const struct port *p = s->ports; p; p = p->next)
		n++;
	if (s->state != SANDBOX_RUNNING || s->stopping) {
		(void)refusal_set(why, REFUSAL_CONFLICT, "sandbox_stopped", NULL, NULL,
				  "the sandbox does not run");
		return false;
	}
	if (n >= PORTS_MAX) {
		(void)refusal_set(why, REFUSAL_CONFLICT, "too_many_ports", NULL, NULL,
				  "32 ports of this sandbox are open already; close one");
		return false;
	}
	return true;
}

struct port *port_open(struct sandbox *s, unsigned int number, bool *ret_made, struct refusal *why)
{
	struct port *p = port_find(s, number);

	*ret_made = !p;
	if (p)
		return p;
	if (!may_open(s, why))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p || !make_token(p->token)) {
		free(p);
		(void)refusal_no_memory(why);
		return NULL;
	}
	if (audit_port_open(s, number, why) < 0) {
		free(p);
		return NULL;
	}
	p->sandbox = s;
	p->number = number;
	p->opened_ms = time_now_ms();
	p->next = s->ports;
	s->ports = p;
	return p;
}

struct port *port_by_token(const struct sandboxes *sandboxes, const char *sandbox,
			   unsigned int number, const char *token)
{
	struct port *found = NULL;

	if (strlen(token) != PORT_TOKEN_LEN)
		return NULL;
	for (const struct sandbox *s = sandboxes->first; s; s = s->next) {
		struct port *p =
			s->name[0] && strcmp(s->name, sandbox) == 0 ? port_find(s, number) : NULL;

		if (p && CRYPTO_memcmp(p->token, token, PORT_TOKEN_LEN) == 0)
			found = p;
	}
	return found;
}

void port_close(struct port *p, const char *why)
{
	struct sandbox *s = p->sandbox;

	while (p->proxied)
		p->cut(p->proxied);
	for (struct port **at = &s->ports; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	audit_port_closed(s, p->number, p->requests, why);
	OPENSSL_cleanse(p->token, sizeof(p->token));
	free(p);
}

void ports_close(struct sandbox *s, const char *why)
{
	while (s->ports)
		port_close(s->ports, why);
}

size_t port_requests(const struct sandbox *s)
{
	size_t n = 0;

	for (const struct port *p = s->ports; p; p = p->next)
		n += p->n_proxied;
	return n;
}

void port_json(const struct port *p, const char *base, struct json *j)
{
	struct port_way way;
	char url[PORT_PREFIX_MAX + 512];

	port_way_set(&way, p->sandbox->name, p->number, p->token);
	(void)snprintf(url, sizeof(url), "%.300s%s/", base, way.prefix);
	json_object_begin(j);
	json_member_uint(j, "port", p->number);
	json_member_str(j, "url", url);
	json_member_str(j, "token", p->token);
	json_member_uint(j, "connections", p->n_proxied);
	json_member_uint(j, "requests", p->requests);
	time_json(j, "opened_at", p->opened_ms);
	json_object_end(j);
}
