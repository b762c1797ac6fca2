/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_kind.h - The kinds of cgroups by name, as tests print and expect them. */
#ifndef CAISSON_TESTS_CGROUP_KIND_H
#define CAISSON_TESTS_CGROUP_KIND_H

#include "cell/cgroup.h"

static inline const char *cgroup_kind_str(enum cgroup_kind kind)
{
	static const char *const names[CGROUP_KINDS_] = {
		[CGROUP_NONE] = "none",
		[CGROUP_V2] = "v2",
		[CGROUP_V1] = "v1",
		[CGROUP_HYBRID] = "hybrid",
	};

	return names[kind];
}

#endif
