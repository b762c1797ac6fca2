/* SPDX-License-Identifier: Apache-2.0 */
/* secret_use.c - Parse NAME and NAME@HOST. */
#include "front/policy/secret_use.h"

#include <string.h>

bool secret_use_parse(const char *text, struct secret_use *ret)
{
	size_t n = strcspn(text, "@");
	const char *host = text + n + (text[n] == '@');
	size_t n_host = strlen(host);

	*ret = (struct secret_use){ 0 };
	if (!vault_name(text, n) || n_host > VAULT_HOST_MAX)
		return false;
	memcpy(ret->name, text, n);
	for (size_t i = 0; i < n_host; i++)
		ret->host[i] =
			(char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] - 'A' + 'a' : host[i]);
	if (n_host > 1 && ret->host[n_host - 1] == '.')
		ret->host[--n_host] = '\0';
	return text[n] != '@' || vault_host(ret->host, n_host);
}
