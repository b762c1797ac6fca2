/* SPDX-License-Identifier: Apache-2.0 */
/* random_id.h - Identifiers that cannot be guessed: 32 hexadecimal digits. */
#ifndef CAISSON_FRONT_RANDOM_ID_H
#define CAISSON_FRONT_RANDOM_ID_H

void random_id(char id[33]);

#endif
