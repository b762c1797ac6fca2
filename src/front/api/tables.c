/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - All tables of routes, of every wire that speaks HTTP. */
#include "front/api/routes.h"

const struct route_table *const route_tables[] = {
	&routes_core,      &routes_sandboxes,  &routes_exec,   &routes_files, &routes_output,
	&routes_approvals, &routes_ports,      &routes_egress, &routes_mcp,   &routes_jupyter,
	&routes_packages,  &routes_workspaces, NULL,
};
