/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_route.c - Paths of any bytes against the table of routes; the method is the first line.
 *
 * A path that is found is its pattern with the parameters put in; one that is not has no Allow, and
 * one with another method has an Allow that does not name it.
 */
#include "../unit/front/handlers_kit.h"
#include "base/buf.h"
#include "front/http/route.h"
#include "fuzz.h"

static void check_found(const struct route *r, const struct route_params *p, const char *path)
{
	_buf_ struct buf b = BUF_INIT(4096);
	size_t n = 0;

	for (const char *s = r->path; *s;) {
		if (*s == '{') {
			require(n < p->n && p->value[n][0] && !strchr(p->value[n], '/'));
			(void)buf_puts(&b, p->value[n++]);
			s += strcspn(s, "}") + 1;
		} else {
			(void)buf_append(&b, s++, 1);
		}
	}
	require(n == p->n && strcmp(buf_str(&b), path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_buf_ struct buf allow = BUF_INIT(256);
	struct route_params params;
	char *text = fuzz_text(data, size), *path = text;
	int status = 0;

	const char *method = strsep(&path, "\n");
	const struct route *r = route_find(method, path ? path : "", &params, &status, &allow);

	require(!allow.err);
	if (r) {
		require(strcmp(r->method, method) == 0 ||
			(strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0));
		check_found(r, &params, path);
	} else if (status == 405) {
		require(strstr(buf_str(&allow), "OPTIONS") != NULL);
		require(strcmp(method, "GET") != 0 || strcmp(path, "*") == 0 ||
			!strstr(buf_str(&allow), "GET"));
	} else {
		require(status == 404 && allow.len == 0);
	}
	free(text);
	return 0;
}
