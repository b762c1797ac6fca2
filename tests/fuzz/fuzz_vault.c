/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_vault.c - Lines of secrets, from any writer.
 *
 * An accepted secret can be written and read again, and is then the same; no value has a byte that
 * could end a header.
 */
#include <unistd.h>

#include "fuzz.h"
#include "vault/vault.h"

static void require_same(const char *a, const char *b)
{
	require(!a == !b && (!a || strcmp(a, b) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vault v, again;

	if (size > 65536 || vault_init(&v, false) < 0)
		return 0;
	if (vault_add(&v, (const char *)data, size, NULL) == 0 && vault_init(&again, false) == 0) {
		int fd = vault_seal(&v, false);

		require(fd >= 0 && vault_unseal(&again, fd, NULL) == 0 && again.n == v.n);
		for (size_t i = 0; i < v.n; i++) {
			require_same(v.list[i].name, again.list[i].name);
			require_same(v.list[i].value, again.list[i].value);
			require_same(v.list[i].owners, again.list[i].owners);
			require_same(v.list[i].hosts, again.list[i].hosts);
			require_same(v.list[i].headers, again.list[i].headers);
			require(!vault_header(&v.list[i], "host"));
			require(v.list[i].value[0] && !strpbrk(v.list[i].value, "\r\n\t"));
		}
		(void)close(fd);
		vault_free(&again);
	}
	vault_free(&v);
	return 0;
}
