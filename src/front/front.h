/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - The daemon's one object: what it was asked for, and what it holds.
 */
#ifndef CAISSON_FRONT_FRONT_H
#define CAISSON_FRONT_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/auth.h"
#include "front/config.h"
#include "front/jail.h"
#include "front/language.h"
#include "front/link.h"
#include "front/nursery.h"
#include "front/pool.h"
#include "front/spool.h"
#include "front/stream_log.h"
#include "front/systemd.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/loop.h"
#include "wire/warden.h"

struct execution;
struct sandbox;
struct ledger;
struct store;

#define FRONT_QUEUE_MAX 512u /* executions that wait for a sandbox */

struct front {
	struct config config;
	char address[80]; /* config.listen, when that asked for any free port */
	struct loop loop;
	struct link link;
	struct auth *auth;
	struct drivers drivers;
	struct cell_spec spec;      /* of every sandbox */
	int image_fd;               /* -1 for host */
	int meminfo_fd;             /* /proc/meminfo, opened before the jail */
	struct ledger *ledger;      /* who ran what */
	struct store *store;        /* records of sandboxes, idempotency keys */
	int ledger_dir, spool_dir;  /* below the state directory, opened before the jail */
	struct spool_bank spools;   /* output beyond what answers return */
	struct stream_bank streams; /* events of streamed executions */
	struct nursery nursery;
	struct pool pool;
	bool has_language[LANG_MAX_]; /* what the image has, as tried at the start */
	struct sandbox *sandboxes;    /* named and anonymous, all that live */
	size_t n_sandboxes, n_rooms, n_busy, n_queued;
	struct http_config http;
	struct listener *listeners[2];
	size_t conns_max;
	struct watch signals;
	struct systemd systemd; /* the service manager, if one started us */
	struct timer drain_timer;
	struct timer forget_timer; /* old idempotency keys */
	uint64_t drain_until_ns;
	bool draining, failed;
	struct jail_report jail;
	uint64_t started_ns;
};

#endif
