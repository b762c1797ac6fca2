/* SPDX-License-Identifier: Apache-2.0 */
/* vault.c - Lines of secrets, taken apart. See vault.h. */
#include "vault/vault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/private.h"
#include "base/utf8.h"

#define TEXT_ROOM ((size_t)VAULT_TEXT_MAX + 4 * VAULT_SECRETS_MAX)

int vault_init(struct vault *v, bool blind)
{
	*v = (struct vault){ .blind = blind };
	v->list = calloc(VAULT_SECRETS_MAX, sizeof(*v->list));
	v->text = private_alloc(TEXT_ROOM);
	if (v->list && v->text)
		return 0;
	vault_free(v);
	return -ENOMEM;
}

void vault_free(struct vault *v)
{
	private_free(v->text, TEXT_ROOM);
	free(v->list);
	*v = (struct vault){ 0 };
}

/* ---- what may be in a line ----------------------------------------------------------------- */

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool vault_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && s[i] != '_')
			return false;
	return len > 0 && len <= VAULT_NAME_MAX && !(s[0] >= '0' && s[0] <= '9');
}

bool vault_host(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool dot = s[i] == '.' && i > 0 && i + 1 < len && s[i - 1] != '.';
		bool inner = (s[i] == '-' || s[i] == '_') && i + 1 < len;

		if (!dot && !inner &&
		    !((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9')))
			return false;
	}
	return len > 0 && len <= VAULT_HOST_MAX;
}

static bool is_owner(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && (i == 0 || !(s[i] && strchr("-._", s[i]))))
			return false;
	return len > 0 && len < 64;
}

/* A header that requests may carry a credential in: not one that says what a request is, or is for
 * the next hop. */
static bool is_header(const char *s, size_t len)
{
	static const char *const never[] = {
		"host",    "connection",        "content-length", "te",        "trailer",
		"upgrade", "transfer-encoding", "expect",         "keep-alive"
	};

	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && (i == 0 || (s[i] != '-' && s[i] != '_')))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (len == strlen(never[i]) && strncasecmp(s, never[i], len) == 0)
			return false;
	return len > 0 && len <= VAULT_NAME_MAX && !(len >= 6 && strncasecmp(s, "proxy-", 6) == 0);
}

static bool is_list(const char *s, size_t len, bool (*is_member)(const char *s, size_t len))
{
	for (size_t at = 0;;) {
		const char *comma = memchr(s + at, ',', len - at);
		size_t n = comma ? (size_t)(comma - s) - at : len - at;

		if (!is_member(s + at, n))
			return false;
		at += n + 1;
		if (!comma)
			return true;
	}
}

/* NULL, or what is wrong with it. */
static const char *value_problem(const char *s, size_t len)
{
	if (len > VAULT_VALUE_MAX)
		return "the value is longer than 8192 bytes";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return "the value has a control byte (lines end with a line feed alone)";
	if (s[0] == ' ' || s[len - 1] == ' ')
		return "the value begins or ends with a space; remove it";
	if (len > 1 && s[0] == s[len - 1] && (s[0] == '"' || s[0] == '\''))
		return "the value is in quotes, which would be part of it; remove them";
	if (!utf8_valid(s, len))
		return "the value is not UTF-8";
	return NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

static char *keep(struct vault *v, const char *s, size_t len)
{
	char *at = v->text + v->used;

	memcpy(at, s, len);
	at[len] = '\0';
	v->used += len + 1;
	return at;
}

static const char *keep_lower(struct vault *v, const char *s, size_t len)
{
	char *at = keep(v, s, len);

	for (char *c = at; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
	return at;
}

static bool lists_meet(const char *a, const char *b)
{
	char one[64];

	for (const char *at = a; a && b && *at;) {
		size_t n = strcspn(at, ",");

		memcpy(one, at, n);
		one[n] = '\0';
		if (vault_lists(b, one))
			return true;
		at += n + (at[n] == ',');
	}
	return !a || !b;
}

static int check_twice(const struct vault *v, size_t number, struct err *e)
{
	const struct secret *new = &v->list[v->n];

	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->list[i].name, new->name) == 0 &&
		    lists_meet(v->list[i].owners, new->owners))
			return err_say(e, -EEXIST, "line %zu: %s occurs twice for the same owner",
				       number, new->name);
	return 0;
}

struct span {
	const char *p; /* NULL: none */
	size_t n;
};

struct line {
	struct span owners, name, hosts, headers, value;
};

/* The parts of a line, by the marks between them. False: it has no '='. */
static bool split(const char *s, size_t len, struct line *ret)
{
	const char *equals = memchr(s, '=', len);
	const char *colon = equals ? memchr(s, ':', (size_t)(equals - s)) : NULL;
	const char *name = colon ? colon + 1 : s, *end = equals;

	*ret = (struct line){ 0 };
	if (!equals)
		return false;
	const char *open = memchr(name, '[', (size_t)(equals - name));

	if (open && equals[-1] == ']') {
		ret->headers = (struct span){ open + 1, (size_t)(equals - open) - 2 };
		end = open;
	}
	const char *at = memchr(name, '@', (size_t)(end - name));

	if (at)
		ret->hosts = (struct span){ at + 1, (size_t)(end - at) - 1 };
	if (colon)
		ret->owners = (struct span){ s, (size_t)(colon - s) };
	ret->name = (struct span){ name, (size_t)((at ? at : end) - name) };
	ret->value = (struct span){ equals + 1, len - (size_t)(equals - s) - 1 };
	return true;
}

/* NULL, or what is wrong with its form. */
static const char *line_problem(const struct line *l)
{
	if (!vault_name(l->name.p, l->name.n))
		return "the name before '=' must have 1 to 64 letters, digits or '_', and no digit "
		       "first";
	if (l->owners.p && !is_list(l->owners.p, l->owners.n, is_owner))
		return "before ':' come names of owners, with commas between";
	if (l->hosts.p && !is_list(l->hosts.p, l->hosts.n, vault_host))
		return "after '@' come names of hosts in lower case, with commas between";
	if (l->headers.p && !is_list(l->headers.p, l->headers.n, is_header))
		return "in brackets come names of request headers that may carry it, with commas "
		       "between, as in [X-Api-Key]; not Host, Content-Length, or one for the next "
		       "hop (Connection, Proxy-Authorization)";
	return NULL;
}

/* Not empty, and no comment. */
static int add_line(struct vault *v, const char *s, size_t len, size_t number, struct err *e)
{
	struct line l;

	if (!split(s, len, &l))
		return err_say(e, -EINVAL, "line %zu: no '=' in it; a line is NAME=VALUE", number);
	const char *problem = line_problem(&l);

	if (problem)
		return err_say(e, -EINVAL, "line %zu: %s", number, problem);
	if (l.value.n == 0 && !(v->blind && l.hosts.p))
		return err_say(e, -EINVAL, "line %zu: %.*s has no value", number, (int)l.name.n,
			       l.name.p);
	problem = l.value.n ? value_problem(l.value.p, l.value.n) : NULL;
	if (problem)
		return err_say(e, -EINVAL, "line %zu: %.*s: %s", number, (int)l.name.n, l.name.p,
			       problem);
	if (v->n == VAULT_SECRETS_MAX || len + 4 > TEXT_ROOM - v->used)
		return err_say(e, -E2BIG, "line %zu: more than %u secrets, or 1 MiB", number,
			       VAULT_SECRETS_MAX);
	v->list[v->n] = (struct secret){
		.owners = l.owners.p ? keep(v, l.owners.p, l.owners.n) : NULL,
		.hosts = l.hosts.p ? keep(v, l.hosts.p, l.hosts.n) : NULL,
		.headers = l.headers.p ? keep_lower(v, l.headers.p, l.headers.n) : NULL,
		.name = keep(v, l.name.p, l.name.n),
		.value = keep(v, l.value.p, l.value.n),
	};
	int r = check_twice(v, number, e);

	v->n += r == 0;
	return r;
}

int vault_add(struct vault *v, const char *text, size_t len, struct err *e)
{
	size_t number = 0, at = 0;
	int r = 0;

	while (r == 0 && at < len) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;

		number++;
		if (n > 0 && text[at] != '#')
			r = add_line(v, text + at, n, number, e);
		at += n + 1;
	}
	return r;
}

/* ---- looking up ---------------------------------------------------------------------------- */

bool vault_lists(const char *list, const char *member)
{
	size_t want = strlen(member);

	if (!list)
		return true;
	for (const char *at = list; *at;) {
		size_t n = strcspn(at, ",");

		if (n == want && strncmp(at, member, n) == 0)
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

/* Those that clients and servers of many use; what only one server has its operator names. */
const char *const vault_headers =
	"authorization,x-api-key,api-key,apikey,x-apikey,x-auth-token,x-auth-key,x-access-token,"
	"x-api-token,x-goog-api-key,private-token,job-token,deploy-token,x-github-token,"
	"x-gitlab-token,ocp-apim-subscription-key,x-functions-key,x-subscription-token,"
	"x-rapidapi-key,xi-api-key,x-vault-token,x-consul-token,x-jfrog-art-api,x-nuget-apikey,"
	"x-figma-token,x-shopify-access-token,x-algolia-api-key,x-typesense-api-key,"
	"x-honeycomb-team,x-n8n-api-key,dd-api-key,dd-application-key,circle-token,fastly-key";

bool vault_header(const struct secret *s, const char *name)
{
	return vault_lists(s->headers ? s->headers : vault_headers, name);
}

const struct secret *vault_find(const struct vault *v, const char *name, const char *owner)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->list[i].name, name) == 0 &&
		    (!owner || vault_lists(v->list[i].owners, owner)))
			return &v->list[i];
	return NULL;
}

/* ---- from process to process --------------------------------------------------------------- */

int vault_seal(const struct vault *v, bool blind)
{
	char *text = private_alloc(TEXT_ROOM);
	size_t n = 0;

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < v->n; i++) {
		const struct secret *s = &v->list[i];
		const char *const parts[] = { s->owners ? s->owners : "",
					      s->owners ? ":" : "",
					      s->name,
					      s->hosts ? "@" : "",
					      s->hosts ? s->hosts : "",
					      s->headers ? "[" : "",
					      s->headers ? s->headers : "",
					      s->headers ? "]" : "",
					      "=",
					      blind && s->hosts ? "" : s->value,
					      "\n" };

		for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
			size_t len = strlen(parts[k]);

			memcpy(text + n, parts[k], len);
			n += len;
		}
	}
	int fd = fd_memfd("caisson-vault", text, n);

	private_free(text, TEXT_ROOM);
	return fd;
}

int vault_unseal(struct vault *v, int fd, struct err *e)
{
	struct stat st;
	char *text = private_alloc(TEXT_ROOM);
	int r = -ENOMEM;

	if (!text)
		return err_set(e, r, "hold secrets");
	if (fstat(fd, &st) < 0 || st.st_size < 0 || (size_t)st.st_size > TEXT_ROOM)
		r = err_say(e, -EINVAL, "this is not a vault");
	else if (pread(fd, text, (size_t)st.st_size, 0) != st.st_size)
		r = err_say(e, -EIO, "the vault cannot be read");
	else
		r = vault_add(v, text, (size_t)st.st_size, e);
	private_free(text, TEXT_ROOM);
	return r;
}
