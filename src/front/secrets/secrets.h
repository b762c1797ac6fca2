/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.h - Secrets that sandboxes ask for by name: `NAME`, or bound to a host,
 * `NAME@api.example.com`.
 *
 * Plain: the value is a variable of everything that runs in the sandbox. Bound: the variable holds
 * a random placeholder, and the gate puts the value in its place in headers of requests to that
 * host. Values of secrets that the operator tied to hosts are not known here at all: the vault of
 * the front is blind (vault/vault.h).
 *
 * A name that is unknown and one that is another owner's are refused in the same words.
 */
#ifndef CAISSON_FRONT_SECRETS_SECRETS_H
#define CAISSON_FRONT_SECRETS_SECRETS_H

#include <jansson.h>
#include <stdbool.h>

#include "vault/vault.h"
#include "wire/gate.h"

struct daemon;
struct err;
struct gate_link;
struct refusal;
struct sandbox;
struct secrets;

#define SECRETS_PLACEHOLDER "caisson-secret-" /* and 32 hexadecimal digits */
#define SECRETS_PLACEHOLDER_MAX 48u

struct secrets {
	struct daemon *daemon;
	struct gate_link *gate;
	struct vault vault;
	int roots; /* certificates that this machine trusts; -1: none */
};

/* secrets_load() - Before the jail. The gate supervisor reads the sources. */
int secrets_load(struct secrets *s, struct err *e);
/* secrets_reload() - After SIGHUP. New secrets hold for later requests; a failed reload changes
 * nothing. */
void secrets_reload(struct secrets *s);
/* secrets_again() - For gate_link.on_secrets. */
void secrets_again(struct gate_link *gate, int blind, const struct err *why);
void secrets_free(struct secrets *s);

/*
 * secrets_give() - Look up what s->spec asks for and make s->vars, the environment of everything in
 * it. Return: 0, or -1 with @ret_why: no such secret, or one that may not be used so.
 */
int secrets_give(struct sandbox *s, struct refusal *ret_why);
/* secrets_look() - Whether the gate has to look into requests, with @egress as its rules. */
bool secrets_look(const struct sandbox *s, const json_t *egress);
/* secrets_trust() - From now on the gate looks into some requests of the sandbox: programs that
 * start later get the variables of trust.h. */
void secrets_trust(struct sandbox *s);
/* secrets_binds() - The bound secrets, for the gate. @ret: room for GATE_BINDS_MAX. */
size_t secrets_binds(const struct sandbox *s, struct gate_bind *ret);
/* secrets_take() - Wipe s->vars. Idempotent. */
void secrets_take(struct sandbox *s);

#endif
