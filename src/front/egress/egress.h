/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress.h - The way out of one sandbox: its sockets in the cell, its rules at the gate.
 *
 * A sandbox whose spec has egress gets it before anybody is let into its cell: pid 1 makes the
 * sockets, they go to the gate with the rules, and when the gate has them the sandbox steps on. A
 * cell that is replaced, one that is adopted by another front, and every one when the gate has been
 * replaced, get theirs anew. What can not be had (something in the cell has taken a port meanwhile)
 * is tried again, for whoever wants in and every second.
 */
#ifndef CAISSON_FRONT_EGRESS_EGRESS_H
#define CAISSON_FRONT_EGRESS_EGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/cell/cell.h"
#include "front/gate/gate_link.h"
#include "front/secrets/trust.h"

struct front;
struct json;
struct refusal;
struct sandbox;

enum egress_state { EGRESS_OFF, EGRESS_MAKING, EGRESS_ON };

/* Who asked for other rules. The struct is the asker's, and zero but for done and arg. */
struct egress_change {
	/* Once: @why NULL when they hold. */
	void (*done)(struct egress_change *w, const struct refusal *why);
	void *arg;
	json_t *list;
	struct egress_change *next; /* who asked after him */
};

#define EGRESS_NOTES 16u

/* Something that did not come to be. */
struct egress_note {
	uint32_t kind; /* enum gate_event_kind */
	uint32_t port;
	uint64_t at_ns, at_ms;
	char host[GATE_HOST_MAX];
	char why[GATE_REASON_MAX];
};

struct egress {
	struct sandbox *sandbox;
	uint32_t id;       /* at the gate */
	struct cell *cell; /* for whose cell this is; NULL: none */
	enum egress_state state;
	bool changing;                 /* rules are under way */
	bool installing;               /* for those who wait to be let in */
	json_t *list;                  /* which; canonical */
	struct egress_change *change;  /* whose rules are under way */
	struct egress_change *waiting; /* whose are next */
	struct cell_command job;
	size_t at; /* the socket that was asked for */
	int fds[2 + GATE_PORTS_MAX];
	struct gate_set next; /* what goes to the gate when all are there */
	struct gate_set held; /* what the gate has */
	struct gate_call call;
	struct trust trust;
	bool trusted; /* this cell has the certificates */
	bool lost;    /* the gate was replaced, and this one not yet handed over */
	struct timer retry;
	struct egress_note notes[EGRESS_NOTES]; /* the last ones; next is the oldest */
	size_t n_notes;
};

/* egress_ready() - Whether whoever wants in may be let in. */
bool egress_ready(const struct sandbox *s);
/* egress_install() - Make it so; sandbox_step() or sandbox_no_cell() follow. Idempotent. */
void egress_install(struct sandbox *s);
/* egress_drop() - Its cell is over. egress_free(): so is the sandbox. */
void egress_drop(struct sandbox *s);
void egress_free(struct sandbox *s);

/*
 * egress_change() - Other rules from now on; what they do not allow is cut. @list: canonical, or
 * NULL; a reference is taken. Done is called, perhaps at once; changes are made in the order they
 * were asked for.
 */
void egress_change(struct sandbox *s, json_t *list, struct egress_change *w);
/* egress_unchange() - Nobody is told any more; a change that has begun goes on. */
void egress_unchange(struct sandbox *s, struct egress_change *w);

/* egress_hint() - What was refused since @since_ns, for a person to act on. False: nothing. */
bool egress_hint(const struct sandbox *s, uint64_t since_ns, char *text, size_t size);

/* egress_force_json() - Members `egress` and `gate`: the entries that the gate holds now, not those
 * that were asked for. */
void egress_force_json(const struct sandbox *s, struct json *j);

/* egress_notes_json() - An array, the newest first. */
void egress_notes_json(const struct egress *g, struct json *j);

/* egress_past() - Its cell is over; what is still told of it is told under its name. */
void egress_past(const struct sandbox *s);

/* egress_cut() - The gate was replaced: said to ledger and owner. */
void egress_cut(const struct sandbox *s);

/* egress_again() - For gate_link.on_again: every sandbox's way out is made anew. */
void egress_again(struct gate_link *l);

/* egress_event() - For gate_link.on_event. */
void egress_event(struct gate_link *l, uint32_t id, const struct gate_event *ev);

#endif
