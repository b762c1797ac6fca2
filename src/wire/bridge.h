/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.h - Limits of the channel between front and bridge (docs/protocol/bridge.md). */
#ifndef CAISSON_WIRE_BRIDGE_H
#define CAISSON_WIRE_BRIDGE_H

#define BRIDGE_FD 3 /* where the bridge finds its end */

#define BRIDGE_PACKET_MAX (64u << 10)
#define BRIDGE_HEAD_MAX (16u << 10)
#define BRIDGE_MESSAGE_MAX (64u << 20) /* of a server */
#define BRIDGE_BODY_MAX (BRIDGE_MESSAGE_MAX + BRIDGE_PACKET_MAX)
#define BRIDGE_TIMEOUT_MAX_MS 3600000u
#define BRIDGE_TOOLS_MS 90000 /* for a list of tools, unless there is less time */
#define BRIDGE_SERVERS_MAX 64u

#endif
