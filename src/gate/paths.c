/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - Which way a flow's bytes take, once name, port and first bytes are known. */
#include "gate/box.h"
#include "gate/flow.h"
#include "gate/inspect.h"

/*
 * HTTP and TLS at home: the first word is the client's. Elsewhere a server may speak first, as with
 * SSH; but not on a host of which every request is looked at.
 */
bool flow_waits(const struct flow *f)
{
	return f->port == 80 || f->port == 443 || box_inspects(f->box, f->host, f->port);
}

/* Port 80 is HTTP's own, and rules for requests can be kept by HTTP alone. On other ports anything
 * may be spoken. */
bool flow_needs_http(const struct flow *f)
{
	return f->port == 80 || box_is_ruled(f->box, f->host, f->port);
}

/*
 * HTTP in plain is looked into in every case: a connection that is kept open has many requests, and
 * each of them names a host. What is neither HTTP nor TLS is refused where there are rules: see
 * flow.c.
 */
const struct flow_path *flow_choose(const struct flow *f)
{
	if (f->hello.kind == HELLO_TLS && box_inspects(f->box, f->host, f->port))
		return &inspect_path;
	return f->hello.kind == HELLO_HTTP ? &inspect_path : &splice_path;
}
