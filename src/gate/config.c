/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - What the front starts the gate with. It has checked the values; they are checked again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "gate/gate.h"

static const char *lookup(char **env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=' && (*env)[len + 1])
			return *env + len + 1;
	return NULL;
}

/* "HOST:PORT", or "HOST:PORT=SERVER". */
static int set_index(struct gate_config *c, const char *value, struct err *e)
{
	struct gate_index *x = &c->indexes[c->n_indexes];
	const char *colon = strchr(value, ':'), *equals = strchr(value, '=');
	size_t len = colon ? (size_t)(colon - value) : 0;
	char *end = NULL;
	unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
	struct prefix p;

	if (c->n_indexes == GATE_INDEXES_MAX || len == 0 || len >= sizeof(x->host) || port == 0 ||
	    port > UINT16_MAX || (*end && end != equals))
		return err_say(e, -EINVAL, "index: no host and port");
	*x = (struct gate_index){ .port = (uint16_t)port, .server = equals ? equals + 1 : NULL };
	memcpy(x->host, value, len);
	if (x->server && strchr(x->server, '/') == NULL && prefix_parse(x->server, &p)) {
		x->addresses[x->n++] = p.net;
	} else if (x->server) { /* localhost, as RFC 6761 has it */
		(void)prefix_parse("127.0.0.1", &p);
		x->addresses[x->n++] = p.net;
		(void)prefix_parse("::1", &p);
		x->addresses[x->n++] = p.net;
	}
	c->n_indexes++;
	return 0;
}

static int set(struct gate_config *c, const char *name, size_t len, const char *value,
	       struct err *e)
{
	uint64_t life = 0;
	struct {
		const char *name;
		uint64_t *to;
	} numbers[] = {
		{ "connections", &c->connections },
		{ "rate", &c->rate },
		{ "bytes", &c->bytes },
		{ "life", &life },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strlen(numbers[i].name) == len && memcmp(numbers[i].name, name, len) == 0) {
			char *end = NULL;

			errno = 0;
			*numbers[i].to = strtoull(value, &end, 10);
			c->life = life ? (uint32_t)life : c->life;
			return errno || *end ? err_say(e, -EINVAL, "%s: no number", name) : 0;
		}
	if (len == 3 && memcmp(name, "dns", 3) == 0) {
		c->dns = value;
		return 0;
	}
	if (len == 2 && memcmp(name, "ca", 2) == 0) {
		c->ca = value;
		return 0;
	}
	if (len == 5 && memcmp(name, "index", 5) == 0)
		return set_index(c, value, e);
	if (len == 7 && memcmp(name, "private", 7) == 0 && c->n_private < GATE_PRIVATE_MAX)
		return prefix_parse(value, &c->private_nets[c->n_private++]) ?
			       0 :
			       err_say(e, -EINVAL, "%s: no range of addresses", name);
	return err_say(e, -EINVAL, "%s: not known", name);
}

int gate_config_parse(int argc, char **argv, char **env, struct gate_config *ret, struct err *e)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy" };
	const char *url = NULL, *no = lookup(env, "NO_PROXY");

	*ret = (struct gate_config){ .connections = 256, .rate = 100 };
	for (int i = 1; i < argc; i++) {
		size_t len = strcspn(argv[i], "=");

		if (!argv[i][len] || set(ret, argv[i], len, argv[i] + len + 1, e) < 0)
			return err_say(e, -EINVAL, "caisson-gate: '%s' is no setting of it",
				       argv[i]);
	}
	if (ret->rate == 0 || ret->connections == 0)
		return err_say(e, -EINVAL, "caisson-gate: rate and connections can not be 0");
	for (size_t i = 0; i < 2 && !url; i++)
		url = lookup(env, names[i]);
	return proxy_parse(url, no ? no : lookup(env, "no_proxy"), &ret->proxy, e);
}
