/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.h - The functions through which the parts above take part in the life of a sandbox.
 *
 * A sandbox knows cells, kernels and executions. Its network access, its packages, its workspace,
 * its secrets, its ports, the tools that its code calls and the wires that watch it are parts that
 * know the sandbox, and not the other way round: the sandbox calls them through this table. `part`
 * is the state of such a part: its functions find it here, and sandboxes only pass it on.
 * main/parts.c has the table.
 */
#ifndef CAISSON_FRONT_SANDBOX_HOOKS_H
#define CAISSON_FRONT_SANDBOX_HOOKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/cell/kernel_pipes.h"

struct egresses;
struct execution;
struct json;
struct kernel;
struct language;
struct mcp;
struct packages;
struct refusal;
struct sandbox;
struct secrets;
struct tool_calls;
struct workspace_use;
struct workspaces;

struct sandbox_hooks {
	struct {
		struct egresses *part;
		bool (*ready)(const struct sandbox *s); /* requests may enter the cell */
		void (*install)(struct sandbox *s);     /* make it ready; sandbox_step() follows */
		void (*drop)(struct sandbox *s);        /* the cell is over */
		void (*free)(struct sandbox *s);        /* the sandbox is over */
		/* The last refusal since @since_ns, for a person to act on; @looks: the output
		 * looks as if a host was not found. False: nothing to say. */
		bool (*hint)(const struct sandbox *s, uint64_t since_ns, bool looks, char *text,
			     size_t size);
	} egress;
	struct {
		struct workspaces *part;
		/* 0, or -1 with @ret. @self: the sandbox, when it runs again. */
		int (*admit)(struct workspaces *workspaces, const char *owner,
			     const struct workspace_use *use, const struct sandbox *self,
			     struct refusal *ret);
		/* False: sandbox_step() or sandbox_no_cell() follows. */
		bool (*ready)(struct sandbox *s);
		/* The cell is over. */
		void (*left)(struct sandbox *s);
	} workspace;
	struct {
		struct packages *part;
		/* Send the kernel the packages that it can import. */
		void (*tell)(struct sandbox *s, struct kernel *k);
		json_t *(*env)(const struct sandbox *s); /* a new object, or NULL */
		/* Handle an install_request of the kernel. */
		void (*request)(struct sandbox *s, struct kernel *k, const json_t *m);
		void (*left)(struct packages *packages, const struct sandbox *s);
		/* The sandbox has a cell, whose programs may request packages; it is over. */
		void (*listen)(struct sandbox *s);
		void (*unlisten)(struct sandbox *s);
	} packages;
	struct {
		struct secrets *part;
		int (*give)(struct sandbox *s, struct refusal *ret); /* makes s->vars */
		void (*take)(struct sandbox *s);                     /* wipes it */
	} secrets;
	struct { /* calls of tools from code */
		struct tool_calls *part;
		void (*write)(const struct execution *x, struct json *j); /* with the code */
		void (*message)(struct execution *x, struct kernel *k, const char *type,
				const json_t *m);
		void (*stray)(struct kernel *k, const json_t *m);
		void (*drained)(struct execution *x, struct kernel *k);
		void (*cancel)(struct execution *x, bool tell); /* all that are under way */
		void (*over)(const struct execution *x);        /* the execution is over */
		void (*close)(struct sandbox *s);
	} tools;
	void (*close_ports)(struct sandbox *s, const char *why);
	struct { /* wires that show a sandbox for longer than one request */
		struct mcp *mcp;
		void (*kernel_ended)(struct sandbox *s, const struct language *l);
		void (*cell_gone)(struct sandbox *s);
		/* Output while no execution runs. */
		void (*background_output)(struct sandbox *s, const struct language *l,
					  enum kernel_stream stream, const char *data, size_t len);
		void (*ended)(struct sandbox *s);
		/* The owner has a sandbox more that runs, or one less. */
		void (*changed)(struct mcp *mcp, const char *owner);
	} wires;
};

#endif
