/* SPDX-License-Identifier: Apache-2.0 */
/* extra.c - Nothing beside the daemon's own tools and resources. */
#include "front/mcp/extra.h"

const struct mcp_extra mcp_extra;
