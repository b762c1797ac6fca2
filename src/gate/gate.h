/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - The gate's one object: its configuration, its sandboxes, its socket to the front. */
#ifndef CAISSON_GATE_GATE_H
#define CAISSON_GATE_GATE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "gate/address.h"
#include "net/loop.h"
#include "vault/source.h"
#include "vault/vault.h"
#include "wire/gate.h"

struct err;
struct lookups;
struct tls_client;

#define GATE_PRIVATE_MAX 32u
#define GATE_INDEXES_MAX 96u

#define PROXY_NO_MAX 1024u

/* The host's proxy (proxy.c). */
struct proxy {
	bool on;
	char host[GATE_HOST_MAX];
	bool is_address; /* host is the text of this address: */
	struct in6_addr address;
	uint16_t port;
	char authorization[512]; /* "Basic ..."; empty: none */
	char no[PROXY_NO_MAX];   /* the text of NO_PROXY */
};

/* A server of a package index. The operator named it, so it may be at a private address. */
struct gate_index {
	char host[GATE_HOST_MAX]; /* its name in cells */
	uint16_t port;
	const char *server;           /* its address, or localhost; NULL: the host */
	struct in6_addr addresses[2]; /* of that server */
	size_t n;
};

struct gate_config {
	struct prefix private_nets[GATE_PRIVATE_MAX]; /* that the operator allows */
	size_t n_private;
	struct gate_index indexes[GATE_INDEXES_MAX];
	size_t n_indexes;
	const char *dns;      /* "ADDRESS:PORT" of a resolver; NULL: those of resolv.conf */
	uint64_t connections; /* of one sandbox at a time */
	uint64_t rate;        /* new ones per second */
	const char *ca;       /* a file of further certificates to trust; NULL: none */
	uint64_t bytes;       /* in both directions, of one sandbox; 0: no limit */
	struct proxy proxy;   /* of the host, for outgoing connections */
	uint32_t life;        /* the number of this gate, from 1; 0: it is the supervisor */
};

struct gate {
	struct gate_config config;
	struct loop loop;
	struct watch control, supervisor;
	struct lookups *lookups;
	struct lookups *proxies; /* for the name of the proxy; NULL: not needed */
	struct vault vault;      /* all secrets of the operator */
	struct tls_client *tls;  /* towards servers */
	LIST_HEAD(gate_sandbox_list, gate_sandbox) sandboxes;
	size_t n_flows, flows_max; /* of all sandboxes */
};

/* gate_config_parse() - The options from the front, and the proxy from the environment. */
int gate_config_parse(int argc, char **argv, char **env, struct gate_config *ret, struct err *e);

/* control_open() - Watch the sockets of the front and of the supervisor; secrets are read first. */
int control_open(struct gate *g, int fd, int supervisor, struct err *e);
/* control_event() - False: the event is lost, since the front does not read. */
bool control_event(struct gate *g, uint32_t id, const struct gate_event *ev);

/* supervisor_sources() - Take --secrets-file=, --secrets-env= and --secrets-command= out of
 * @argv. */
struct sources supervisor_sources(char **argv);

/* supervisor_run() - The process that starts gates, with the rights of the user who started the
 * daemon, until the front is gone. @argv: of the gates. Return: an exit status. */
int supervisor_run(char **argv, char **env, const struct sources *from);

/* proxy_parse() - "http://[user:password@]host:port". Pure. */
int proxy_parse(const char *url, const char *no, struct proxy *ret, struct err *e);

/* proxy_wanted() - Whether @host goes through it. */
bool proxy_wanted(const struct proxy *p, const char *host);

/* proxy_request() - Write the request. Return: its length, 0 when it does not fit. */
size_t proxy_request(const struct proxy *p, const char *host, uint16_t port, char *out,
		     size_t size);

/*
 * proxy_answer() - Read its answer. Return: the length of the head of a 2xx, 0 when the head is
 * incomplete, -ECONNREFUSED for another status, -EPROTO.
 */
int proxy_answer(const char *p, size_t len);

#endif
