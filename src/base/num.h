/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num.h - Strict parsers for the numbers people type, and formatters for the ones they read.
 *
 * The parsers are pure: no locale, no allocation, no global state. They take the whole string or
 * nothing: no leading or trailing space, sign, hexadecimal, exponent, "nan" or "inf". Arithmetic is
 * exact in integers, so "0.1G" means the same everywhere. On failure *ret is untouched, the result
 * is -EINVAL (not a number of this kind) or -ERANGE (a number, but too large or too small), and the
 * message quotes the input, made printable and shortened, and says what is accepted.
 *
 * A fraction has at most six digits and is rounded down to the unit of the result. It needs a unit
 * above the smallest one ("1.5K", not "1.5" bytes). A value that is not zero never becomes zero.
 * Zero itself parses: whether a limit of zero makes sense is for the caller to say.
 */
#ifndef CAISSON_BASE_NUM_H
#define CAISSON_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/*
 * num_parse_size() - Bytes: "1000", "100k", "256M", "1.5G", "512MiB".
 * Units are K, M, G and T in either case, always powers of 1024, optionally followed by "B", "i" or
 * "iB"; a lone "B" is bytes.
 */
int num_parse_size(const char *s, uint64_t *ret_bytes, struct err *e);

/* num_parse_duration_ms() - Time: "10" and "1.5" are seconds; "500ms", "30s", "2m", "1h". */
int num_parse_duration_ms(const char *s, uint64_t *ret_ms, struct err *e);

/* num_parse_cpus_milli() - Processors in thousandths: "0.5" gives 500, "2" gives 2000. */
int num_parse_cpus_milli(const char *s, uint64_t *ret_milli, struct err *e);

/* num_parse_u64() - A plain decimal number between @min and @max, both included. */
int num_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);

/* num_digits() - The number that @len digits are. False, and @ret as it was: no digits, another
 * byte among them, or a number that does not fit. */
bool num_digits(const char *s, size_t len, uint64_t *ret);

/* Room that every formatter below fits in, with its NUL. */
#define NUM_FORMAT_MAX 40

/*
 * num_format_size() - "0 B", "256 MiB", "1.5 GiB": at most one decimal, rounded to nearest.
 * Return: @buf, always NUL-terminated (cut when @size is too small; @size must not be 0).
 */
char *num_format_size(uint64_t bytes, char *buf, size_t size);

/* num_format_ms() - "500 ms", "1.5 s", "2 min 5 s", "1 h 30 min"; rounded down. Return: @buf. */
char *num_format_ms(uint64_t ms, char *buf, size_t size);

/* hex_text() - @n bytes as 2 * @n hexadecimal digits and a NUL. */
void hex_text(const unsigned char *bytes, size_t n, char *ret);
/* hex_digit() - The value of a hexadecimal digit, or -1. */
int hex_digit(char c);
/* hex_escape() - The byte that the percent escape at @s stands for, or -1. */
int hex_escape(const char *s, size_t len);

#endif
