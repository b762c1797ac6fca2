/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress.h - The way out of one sandbox: its sockets in the cell, its rules at the gate.
 *
 * A sandbox whose spec has egress gets it before any request enters its cell: pid 1 makes the
 * sockets, they go to the gate with the rules, and when the gate has them the sandbox goes on. They
 * are made anew for a new cell, for a cell that another front adopts, and for every cell when the
 * gate was replaced. If that fails (something in the cell has taken a port meanwhile) it is tried
 * again for each request that wants to enter, and every second.
 */
#ifndef CAISSON_FRONT_EGRESS_EGRESS_H
#define CAISSON_FRONT_EGRESS_EGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/cell/cell.h"
#include "front/gate/gate_link.h"
#include "front/secrets/trust.h"

struct json;
struct refusal;
struct sandbox;
struct sandboxes;
struct secrets;

enum egress_state { EGRESS_OFF, EGRESS_MAKING, EGRESS_ON };

/* A request for other rules. The struct is the asker's, and zero but for done and arg. */
struct egress_change {
	/* Once: @why NULL when they hold. */
	void (*done)(struct egress_change *w, const struct refusal *why);
	void *arg;
	json_t *list;
	struct egress_change *next; /* the request after it */
};

#define EGRESS_NOTES 16u

/* A connection or name that was refused or failed. */
struct egress_note {
	uint32_t kind; /* enum gate_event_kind */
	uint32_t port;
	uint64_t at_ns, at_ms;
	char host[GATE_HOST_MAX];
	char why[GATE_REASON_MAX];
};

/* All ways out. */
struct egresses {
	struct sandboxes *sandboxes;
	struct gate_link *gate;
	struct secrets *secrets;
};

struct egress {
	struct sandbox *sandbox;
	uint32_t id;       /* at the gate */
	struct cell *cell; /* that this is for; or NULL */
	enum egress_state state;
	bool changing;                 /* rules are under way */
	bool installing;               /* for requests that wait to enter the cell */
	json_t *list;                  /* the rules that are under way; canonical */
	struct egress_change *change;  /* the request for them; or NULL */
	struct egress_change *waiting; /* the next requests */
	struct cell_command job;
	size_t at; /* the socket that pid 1 makes */
	int fds[2 + GATE_PORTS_MAX];
	struct gate_set next; /* for the gate, when all sockets are there */
	struct gate_set held; /* by the gate */
	struct gate_call call;
	struct trust trust;
	bool trusted; /* this cell has the certificates */
	bool lost;    /* the gate was replaced, and has not got this one yet */
	struct timer retry;
	struct egress_note notes[EGRESS_NOTES]; /* the last ones; next is the oldest */
	size_t n_notes;
};

/* egress_ready() - Whether requests may enter the cell. */
bool egress_ready(const struct sandbox *s);
/* egress_install() - Make it so; sandbox_step() or sandbox_no_cell() follow. Idempotent. */
void egress_install(struct sandbox *s);
/* egress_drop() - The cell has ended. egress_free(): the sandbox has, too. */
void egress_drop(struct sandbox *s);
void egress_free(struct sandbox *s);

/*
 * egress_change() - Other rules from now on; connections that they do not allow are cut. @list:
 * canonical, or NULL; a reference is taken. Done is called, perhaps at once; changes are made in
 * the order of the requests.
 */
void egress_change(struct sandbox *s, json_t *list, struct egress_change *w);

/* egress_last() - The last refusal or failure since @since_ns; NULL: none. */
const struct egress_note *egress_last(const struct sandbox *s, uint64_t since_ns);
/*
 * egress_hint() - The last refusal since @since_ns, for a person to act on. @looks: the output
 * looks as if a host was not found; then there is a hint without a refusal, too. False: none.
 */
bool egress_hint(const struct sandbox *s, uint64_t since_ns, bool looks, char *text, size_t size);

/* egress_force_json() - Members `egress` and `gate`: the entries that the gate enforces now. */
void egress_force_json(const struct sandbox *s, struct json *j);

/* egress_notes_json() - An array, the newest first. */
void egress_notes_json(const struct egress *g, struct json *j);

/* egress_past() - The cell has ended; later events of it are recorded under its name. */
void egress_past(const struct sandbox *s);

/* egress_cut() - The gate was replaced: note it in the ledger and for the owner. */
void egress_cut(const struct sandbox *s);

/* egress_again() - For gate_link.on_again: make the way out of every sandbox anew. */
void egress_again(struct gate_link *l);

/* egress_event() - For gate_link.on_event. */
void egress_event(struct gate_link *l, uint32_t id, const struct gate_event *ev);

/* ---- between its files --------------------------------------------------------------------- */

/* egress_apply() - Bring @list to the gate, for g->cell; egress_applied() follows, perhaps at once.
 * A reference to @list is taken. */
void egress_apply(struct egress *g, json_t *list);
/* egress_applied() - The gate has g->list; or, with @why, it has what it had before. */
void egress_applied(struct egress *g, const struct refusal *why);

#endif
