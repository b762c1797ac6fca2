/* SPDX-License-Identifier: Apache-2.0 */
/*
 * displays.c - The displays of one execution. See displays.h.
 *
 * Each is kept as JSON text: the values of the kernel would take many times that memory. Invariant:
 * bytes is the sum of all lengths, and at most DISPLAYS_BYTES.
 */
#include "front/sandbox/displays.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/support/json_alloc.h"

static void drop(struct displays *d, struct display *one)
{
	d->bytes -= one->len;
	free(one->json);
	free(one->id);
	*one = (struct display){ 0 };
}

void displays_clear(struct displays *d, bool wait)
{
	d->clearing = wait;
	if (wait)
		return;
	while (d->n > 0)
		drop(d, &d->list[--d->n]);
	d->dropped = 0;
}

void displays_output(struct displays *d)
{
	if (d->clearing)
		displays_clear(d, false);
}

/* The JSON of @display into @one, if there are at most @room bytes of it. */
static bool write_one(struct display *one, const json_t *display, size_t room)
{
	const char *id = json_string_value(json_object_get(display, "display_id"));
	_buf_ struct buf text = BUF_INIT(room);

	/* Text that does not fit is not written to its end. */
	json_alloc_dump(&text, display);
	if (text.err)
		return false;
	struct display made = {
		.json = strndup(buf_str(&text), text.len),
		.len = text.len,
		.id = id ? strdup(id) : NULL,
		.cut = json_is_true(json_object_get(display, "truncated")),
	};

	if (!made.json || (id && !made.id)) {
		free(made.json);
		free(made.id);
		return false;
	}
	*one = made;
	return true;
}

/* An update takes the place of the displays of its id, and is then no update. Return: its size; 0:
 * this execution has no display of this id, or there is no room. */
static size_t replace(struct displays *d, const json_t *display, bool *ret_found)
{
	const char *id = json_string_value(json_object_get(display, "display_id"));
	json_t *whole = NULL;
	size_t len = 0;

	for (size_t i = 0; id && i < d->n; i++) {
		struct display *old = &d->list[i], new;

		if (!old->id || strcmp(old->id, id) != 0)
			continue;
		*ret_found = true;
		if (!whole && (whole = json_copy((json_t *)display)))
			(void)json_object_set_new(whole, "update", json_false());
		if (!whole || !write_one(&new, whole, DISPLAYS_BYTES - d->bytes + old->len)) {
			len = 0;
			break;
		}
		drop(d, old);
		*old = new;
		d->bytes += new.len;
		len = new.len;
	}
	json_decref(whole);
	return len;
}

size_t displays_put(struct displays *d, const json_t *display)
{
	bool found = false;
	size_t len = 0;

	displays_output(d);
	if (json_is_true(json_object_get(display, "update")))
		len = replace(d, display, &found);
	if (!found && d->n < DISPLAYS_MAX &&
	    write_one(&d->list[d->n], display, DISPLAYS_BYTES - d->bytes)) {
		len = d->list[d->n++].len;
		d->bytes += len;
	}
	d->dropped += len == 0;
	return len;
}

bool displays_cut(const struct displays *d)
{
	bool cut = d->dropped > 0;

	for (size_t i = 0; i < d->n; i++)
		cut |= d->list[i].cut;
	return cut;
}

void displays_json(const struct displays *d, struct json *j)
{
	json_member_array(j, "displays");
	for (size_t i = 0; i < d->n; i++)
		json_raw(j, d->list[i].json, d->list[i].len);
	json_array_end(j);
	if (d->dropped)
		json_member_uint(j, "displays_dropped", d->dropped);
}

json_t *displays_load(const struct displays *d)
{
	json_t *all = json_array();

	for (size_t i = 0; all && i < d->n; i++) {
		json_t *one =
			json_alloc_load(d->list[i].json, d->list[i].len, JSON_ALLOW_NUL, NULL);

		if (one)
			(void)json_array_append_new(all, one);
	}
	return all;
}
