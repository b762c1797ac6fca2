/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_config.h - What hosts of the Model Context Protocol want to be told about us. */
#ifndef CAISSON_REMOTE_MCP_CONFIG_H
#define CAISSON_REMOTE_MCP_CONFIG_H

struct err;
struct remote_options;

/* mcp_config_print() - As JSON on stdout, for the host that @o names. 0 or -EINVAL. */
int mcp_config_print(const struct remote_options *o, struct err *e);

#endif
