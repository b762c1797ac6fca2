/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - The gate's one object: what it was started with, the sandboxes it serves, the way to the
 * front.
 */
#ifndef CAISSON_GATE_GATE_H
#define CAISSON_GATE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/address.h"
#include "gate/proxy.h"
#include "net/loop.h"
#include "vault/vault.h"
#include "wire/gate.h"

struct box;
struct err;
struct lookups;
struct tls_client;

#define GATE_PRIVATE_MAX 32u
#define GATE_INDEXES_MAX 96u

/* A server of a package index: who starts the daemon named it, so it may be at a private address.
 */
struct gate_index {
	char host[GATE_HOST_MAX]; /* as cells know it */
	uint16_t port;
	const char *server; /* which server that is: an address or localhost; NULL: the host */
	struct in6_addr addresses[2]; /* of that server */
	size_t n;
};

struct gate_config {
	struct prefix private_nets[GATE_PRIVATE_MAX]; /* that the operator lets through */
	size_t n_private;
	struct gate_index indexes[GATE_INDEXES_MAX];
	size_t n_indexes;
	const char *dns;      /* "ADDRESS:PORT" instead of resolv.conf's; NULL: those */
	uint64_t connections; /* of one sandbox at a time */
	uint64_t rate;        /* new ones per second */
	const char *ca; /* further certificates that servers may prove themselves with; NULL: none
			 */
	uint64_t bytes; /* both ways, in its life; 0: no end */
	struct proxy proxy; /* of the host, for the way out */
	uint32_t life; /* which gate of its supervisor's this is, from 1; 0: it is the supervisor */
};

struct gate {
	struct gate_config config;
	struct loop loop;
	struct watch control, supervisor;
	struct lookups *lookups;
	struct lookups *proxies; /* for the name of the proxy; NULL: it needs none */
	struct vault vault;      /* all secrets of the operator */
	struct tls_client *tls;  /* towards servers */
	struct box *boxes;
	size_t n_flows, flows_max; /* of all */
};

/* gate_config_parse() - The options that the front gives, and the proxy of the environment. */
int gate_config_parse(int argc, char **argv, char **env, struct gate_config *ret, struct err *e);

/* control_open() - Listen to the front on @fd, and to the supervisor, whose secrets are taken
 * first. */
int control_open(struct gate *g, int fd, int supervisor, struct err *e);
/* control_event() - False: the front does not read; it is lost. */
bool control_event(struct gate *g, uint32_t id, const struct gate_event *ev);

/* gate_jail() - Give up everything but sockets. */
int gate_jail(struct err *e);

#endif
