/* SPDX-License-Identifier: Apache-2.0 */
/* option_value.h - Parse and store one value; between options.c and option_value.c. */
#ifndef CAISSON_BASE_OPTION_VALUE_H
#define CAISSON_BASE_OPTION_VALUE_H

#include "base/options.h"

/*
 * option_store() - Parse @value as the kind of @row and store it in the target.
 * Return: 0, or a negative errno with a message that does not name the option.
 */
int option_store(struct options *p, const struct option_row *row, const char *value, struct err *e);

/* option_clear() - Empty the list of @row. Other kinds stay as they are. */
void option_clear(const struct options *p, const struct option_row *row);

#endif
