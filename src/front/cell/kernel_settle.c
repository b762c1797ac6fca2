/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_settle.c - A kernel that worked for a front that was killed comes to rest.
 *
 * It is interrupted, as for any client that goes away, and says that it is done. Perhaps it had
 * said so and the front was killed before it had noted that, or had not sent the code: then nothing
 * comes. So when it says so, or after a moment, it is sent an execution of nothing, and only the
 * end of that one counts: what was said to one front can not be taken by the next for an answer to
 * another question. If it does not come within the usual grace the kernel is killed with everything
 * in its cell, and if it does not even die the cell is given up.
 */
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "client/init_client.h"
#include "front/cell/cell.h"
#include "front/cell/kernel.h"
#include "front/support/front.h"
#include "front/support/random_id.h"

#define STEP_NS (200 * CLOCK_NS_PER_MS)
#define GRACE_NS (2 * CLOCK_NS_PER_S)
#define KILL_NS (5 * CLOCK_NS_PER_S)

static void probe(struct kernel *s)
{
	_buf_ struct buf b = BUF_INIT(256);
	struct json j;

	random_id(s->probe);
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "execute");
	json_member_str(&j, "id", s->probe);
	json_member_str(&j, "name", "<adopted>");
	json_member_str(&j, "code", "");
	json_object_end(&j);
	if (json_finish(&j) == 0)
		kernel_pipes_send(&s->pipes, &b);
}

static void on_step(struct timer *t)
{
	static const struct cell_usage none = { .end = CELL_END_CLIENT };
	struct kernel *s = t->arg;
	struct cell *r = s->cell;
	uint64_t now = r->f->loop.now_ns;

	if (now < s->settle_until_ns) {
		if (!s->probe[0])
			probe(s);
		else if (!s->rested)
			cell_interrupt(r, s);
		timer_set(&r->f->loop, t, now + STEP_NS);
	} else if (now < s->settle_until_ns + KILL_NS) {
		cell_kill_all(r);
		timer_set(&r->f->loop, t, s->settle_until_ns + KILL_NS);
	} else {
		r->ops->gone(r, &none);
	}
}

void kernel_settle(struct kernel *s)
{
	struct cell *r = s->cell;

	s->state = KERNEL_BUSY;
	s->settling = true;
	s->rested = false;
	s->probe[0] = '\0';
	kernel_idle(&s->pipes, false);
	s->settle_until_ns = r->f->loop.now_ns + GRACE_NS;
	s->settle.fn = on_step;
	s->settle.arg = s;
	timer_set(&r->f->loop, &s->settle, r->f->loop.now_ns + STEP_NS);
	cell_interrupt(r, s);
}

void kernel_unsettle(struct kernel *s)
{
	timer_cancel(&s->settle);
	s->settling = false;
}

void kernel_settle_message(struct kernel *s, const char *type, json_t *m)
{
	const char *id = json_string_value(json_object_get(m, "id"));

	if (strcmp(type, "execution_done") != 0) {
		s->cell->ops->stray(s, type, m);
		return;
	}
	if (!s->probe[0])
		probe(s);
	if (!id || strcmp(id, s->probe) != 0)
		return;
	s->rested = true;
	/* Interrupts may still be on their way, and must not reach what runs next. When pid 1 has
	 * answered a question that came after them, they are over. */
	(void)init_disk(s->cell->channel.fd, CELL_SETTLE + s->language->id, NULL);
}

void kernel_settled(struct kernel *s)
{
	if (!s->settling || !s->rested)
		return;
	kernel_unsettle(s);
	s->state = KERNEL_IDLE;
	kernel_idle(&s->pipes, true);
	kernel_acknowledge(s); /* a display that the former front had read */
	s->cell->ops->kernel_ready(s->cell, s);
}

bool cell_settling(const struct cell *r)
{
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].settling)
			return true;
	return false;
}
