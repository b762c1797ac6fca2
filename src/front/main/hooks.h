/* SPDX-License-Identifier: Apache-2.0 */
/* hooks.h - The table of what the parts of this daemon do in a sandbox's life (sandbox/hooks.h). */
#ifndef CAISSON_FRONT_MAIN_HOOKS_H
#define CAISSON_FRONT_MAIN_HOOKS_H

extern const struct cell_hooks cell_hooks;
extern const struct serve_hooks serve_hooks;
extern const struct sandbox_hooks sandbox_hooks;

#endif
