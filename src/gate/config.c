/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - The options of caisson-gate, which the front has checked and the gate checks again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/options.h"
#include "gate/gate.h"

/* "HOST:PORT", or "HOST:PORT=SERVER". */
static int set_index(void *target, const char *value, struct err *e)
{
	struct gate_config *c = target;
	struct gate_index *x = &c->indexes[c->n_indexes];
	const char *colon = strchr(value, ':'), *equals = strchr(value, '=');
	size_t len = colon ? (size_t)(colon - value) : 0;
	char *end = NULL;
	unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
	struct prefix p;

	if (c->n_indexes == GATE_INDEXES_MAX || len == 0 || len >= sizeof(x->host) || port == 0 ||
	    port > UINT16_MAX || (*end && end != equals))
		return err_say(e, -EINVAL, "must be HOST:PORT or HOST:PORT=SERVER, not '%.80s'",
			       value);
	*x = (struct gate_index){ .port = (uint16_t)port, .server = equals ? equals + 1 : NULL };
	memcpy(x->host, value, len);
	if (x->server && strchr(x->server, '/') == NULL && prefix_parse(x->server, &p)) {
		x->addresses[x->n++] = p.net;
	} else if (x->server) { /* localhost, by RFC 6761 */
		(void)prefix_parse("127.0.0.1", &p);
		x->addresses[x->n++] = p.net;
		(void)prefix_parse("::1", &p);
		x->addresses[x->n++] = p.net;
	}
	c->n_indexes++;
	return 0;
}

static int set_private(void *target, const char *value, struct err *e)
{
	struct gate_config *c = target;

	if (c->n_private == GATE_PRIVATE_MAX ||
	    !prefix_parse(value, &c->private_nets[c->n_private]))
		return err_say(e, -EINVAL,
			       "'%.64s' is not a range of addresses, or there are too many", value);
	c->n_private++;
	return 0;
}

static int set_life(void *target, const char *value, struct err *e)
{
	uint64_t life = 0;
	int r = num_parse_u64(value, 1, UINT32_MAX, &life, e);

	((struct gate_config *)target)->life = (uint32_t)life;
	return r;
}

#define AT(member) offsetof(struct gate_config, member)

static const struct option_row rows[] = {
	{ "--connections", NULL, "N", OPTION_NUMBER, AT(connections), .min = 1, .initial = "256" },
	{ "--rate", NULL, "N", OPTION_NUMBER, AT(rate), .min = 1, .initial = "100" },
	{ "--bytes", NULL, "N", OPTION_NUMBER, AT(bytes) },
	{ "--life", NULL, "N", OPTION_CUSTOM, 0, .set = set_life },
	{ "--dns", NULL, "ADDR:PORT", OPTION_TEXT, AT(dns) },
	{ "--ca", NULL, "FILE", OPTION_TEXT, AT(ca) },
	{ "--index", NULL, "HOST:PORT[=SERVER]", OPTION_CUSTOM, 0, .set = set_index },
	{ "--private", NULL, "NET", OPTION_CUSTOM, 0, .set = set_private },
};

int gate_config_parse(int argc, char **argv, char **env, struct gate_config *ret, struct err *e)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy" };
	const char *url = NULL, *no = options_lookup(env, "NO_PROXY");
	struct options p = { .rows = rows, .n_rows = ARRAY_SIZE(rows), .target = ret };

	*ret = (struct gate_config){ 0 };
	if (options_defaults(&p, e) < 0 || options_arguments(&p, argc, argv, e) < 0)
		return err_wrap(e, "caisson-gate");
	for (size_t i = 0; i < 2 && !url; i++)
		url = options_lookup(env, names[i]);
	return proxy_parse(url, no ? no : options_lookup(env, "no_proxy"), &ret->proxy, e);
}
