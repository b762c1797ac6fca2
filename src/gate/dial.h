/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial.h - How a flow gets its other end. It ends with flow_connected(), flow_fail() or
 * flow_refuse_soon(), perhaps before dial_begin() returns; what goes on meanwhile ends with the
 * flow's sockets, lookup and timer.
 */
#ifndef CAISSON_GATE_DIAL_H
#define CAISSON_GATE_DIAL_H

struct flow;

void dial_begin(struct flow *f);
/* dial_late() - The flow's timer: what is being tried has had its time. */
void dial_late(struct flow *f);

#endif
