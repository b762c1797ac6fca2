/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - FIPS 180-4, for a program that links nothing. */
#ifndef CAISSON_BASE_SHA256_H
#define CAISSON_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t len;
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, uint8_t ret[32]);

#endif
