/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - The channel between the front and the gate, and the addresses that names have in cells.
 *
 * A SEQPACKET socket made by the front. Messages are one fixed-size struct. Lists are in a sealed
 * memfd of fixed-size structs: the rules of a sandbox in GATE_SET, its connections in GATE_STATE.
 * Neither side trusts the other: the gate moves bytes of cells and of the internet.
 *
 * Between them stands a supervisor (gate/supervisor.c), which starts gate after gate on that one
 * socket and has another one to each of the two: to the front (struct supervisor_msg), and to the
 * gate, for GATE_VAULT alone.
 */
#ifndef CAISSON_WIRE_GATE_H
#define CAISSON_WIRE_GATE_H

#include <stdint.h>

#define GATE_FD 3            /* the gate finds its end here */
#define GATE_SUPERVISOR_FD 4 /* a gate: the supervisor's socket. The supervisor: the front's */
#define GATE_SECRETS_FD 5    /* the supervisor: the environment's secrets (vault/source.h) */
#define GATE_VERSION 3u

/*
 * In every cell these ranges (benchmarking networks, RFC 2544 and RFC 5180: nobody's on any
 * internet) are local addresses of lo. Each name that is allowed has one of its own in both, so the
 * address that a connection was made to says which name was meant.
 */
#define GATE_NET4 0xc6120000u  /* 198.18.0.0 */
#define GATE_NET4_BITS 15      /* 198.18.0.0/15 */
#define GATE_SELF4 0xc6120001u /* 198.18.0.1: lo's own; the resolver, port 53 */
#define GATE_SELF4_TEXT "198.18.0.1"
#define GATE_NET6                                                                                  \
	{                                                                                          \
		0x20, 0x01, 0x00, 0x02                                                             \
	} /* 2001:2::, and ::1 of it is lo's own */
#define GATE_NET6_BITS 48
#define GATE_FIRST 0x100u    /* 198.18.1.0 and 2001:2::100 are the first name's */
#define GATE_NAMES_MAX 4096u /* of one sandbox, with those that wildcards gave */

#define GATE_HOST_MAX 254u /* a name without its trailing dot, and a NUL */
#define GATE_RULES_MAX 512u
#define GATE_PORTS_MAX 16u /* different ones of one sandbox */
#define GATE_REASON_MAX 96u

enum gate_op {
	/* front -> gate: these rules from now on. Descriptors: the rules; with GATE_DNS the two
	 * sockets of the resolver, UDP and TCP; one listening socket for each bit of fresh.
	 * Connections that no rule allows any more are cut. */
	GATE_SET = 1,
	GATE_CLOSE,   /* front -> gate: the sandbox is over: everything of it is closed */
	GATE_INQUIRE, /* front -> gate: how is it? GATE_STATE answers */
	/* front -> gate, before the GATE_SET that it goes with: requests to some hosts are
	 * inspected. Descriptor: struct gate_bind[]. GATE_DONE answers, with the certificate of the
	 * sandbox's authority (PEM). */
	GATE_BIND,
	/* supervisor -> gate, before it is ready and whenever they change: descriptor: the
	 * operator's secrets (vault/vault.h); id 1 */
	GATE_VAULT,
	/* gate -> front: in its jail, once, first. One with another life: the gate before it is
	 * gone with all that it had, and requests to it are not answered. */
	GATE_READY,
	GATE_DONE, /* gate -> front: answer to GATE_SET, with its seq */
	/* gate -> front: answer to GATE_INQUIRE. Descriptor: struct gate_conn[], gate_name[] */
	GATE_STATE,
	GATE_EVENT, /* gate -> front: an entry for the ledger */
};

#define GATE_METHODS_MAX 64u
#define GATE_PATH_MAX 256u

enum gate_rule_flag {
	GATE_WILD = 1u << 0, /* every name below host, at any depth, and not host itself */
	/* Of a fetcher: private addresses are allowed for a known package index. */
	GATE_INDEX = 1u << 1,
};

/* host is canonical: lower case, A-labels, no trailing dot. In no order. */
struct gate_rule {
	char host[GATE_HOST_MAX];
	uint16_t port;
	uint32_t flags; /* enum gate_rule_flag */
	/* Of requests over HTTP; with either, connections are inspected. */
	char methods[GATE_METHODS_MAX]; /* separated by commas; empty: any */
	char path[GATE_PATH_MAX];       /* a pattern (gate/http_rule.h); empty: any */
};

#define GATE_BINDS_MAX 64u

/* The value of a secret takes the place of a placeholder in headers of requests to host. */
struct gate_bind {
	char host[GATE_HOST_MAX];
	char name[65], owner[65];
	char placeholder[48];
};

struct gate_set {
	uint32_t n_rules;
	uint32_t n_ports;
	uint32_t fresh;                 /* bit n: a listening socket for ports[n] comes with this */
	uint32_t dns;                   /* 1: the resolver's sockets come with this */
	uint16_t ports[GATE_PORTS_MAX]; /* all of them; a socket for another port is closed */
};

enum gate_event_kind {
	GATE_OPENED = 1,   /* connected: host, port, address */
	GATE_CLOSED,       /* over: host, port, up, down, why */
	GATE_REFUSED,      /* a connection that a rule, an address or a limit forbids */
	GATE_NAME_REFUSED, /* a name that was asked for */
	GATE_FAILED,       /* allowed, but the server could not be reached */
	GATE_SECRET_USED,  /* a request got the value of a secret: why is its name */
	GATE_SECRET_STRAY, /* a placeholder went where it has no value */
	GATE_FLOOD,        /* count events of this sandbox were not reported one by one */
	GATE_KIND_MAX_,
};

struct gate_event {
	uint32_t kind; /* enum gate_event_kind */
	uint32_t port;
	uint64_t up, down; /* bytes: out of the cell, into it */
	uint64_t count;
	char host[GATE_HOST_MAX]; /* as asked for: may be any printable bytes when refused */
	char address[46];
	char why[GATE_REASON_MAX];
};

struct gate_numbers {
	uint64_t opened, closed, refused, failed; /* connections */
	uint64_t asked, names_refused;            /* names */
	uint64_t up, down;                        /* bytes, of those that are over too */
	uint32_t live;                            /* connections */
	uint32_t n_conns;                         /* in the memfd: at most GATE_CONNS_SHOWN */
	uint32_t n_names;                         /* after these: at most GATE_NAMES_SHOWN */
};

#define GATE_CONNS_SHOWN 256u
#define GATE_NAMES_SHOWN 64u

/* A connection, as GATE_STATE shows it. */
struct gate_conn {
	char host[GATE_HOST_MAX];
	char address[46]; /* outside; empty until it is known */
	uint16_t port;
	uint16_t state; /* enum gate_conn_state */
	uint64_t up, down, age_ms;
};

/* A name that was asked for, the newest first. */
struct gate_name {
	char host[GATE_HOST_MAX]; /* bytes that no host name has are question marks */
	uint16_t allowed;         /* when it was asked for last */
	uint64_t count;
};

enum gate_conn_state { GATE_RESOLVING, GATE_CONNECTING, GATE_FLOWING };

struct gate_msg {
	uint32_t version, op; /* enum gate_op */
	uint32_t id;          /* of the sandbox: the front's number for it, never 0 */
	int32_t code;         /* GATE_DONE: 0 or a negative errno */
	uint32_t life;        /* the gate that it is from, or for: others ignore it */
	uint64_t seq;
	union {
		struct gate_set set;
		uint32_t n_binds; /* GATE_BIND */
		struct gate_event event;
		struct gate_numbers numbers;
	} u;
};

/* ---- front and supervisor ------------------------------------------------------------------ */

enum supervisor_op {
	/* supervisor -> front, first, and after each SUPERVISOR_RELOAD: the operator's secrets,
	 * without the values of those that are tied to hosts, as a descriptor; none when there is
	 * no source. Or code and why: then the former secrets stay. */
	SUPERVISOR_SECRETS = 1,
	SUPERVISOR_RELOAD, /* front -> supervisor: read them again; several pending are one */
};

struct supervisor_msg {
	uint32_t version, op; /* GATE_VERSION, enum supervisor_op */
	int32_t code;         /* 0 or a negative errno */
	char why[500];        /* for the operator; names no value */
};

#endif
