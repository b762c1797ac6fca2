/* SPDX-License-Identifier: Apache-2.0 */
/* routes_packages.c - Packages: for all of a caller's sandboxes, and for one. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define INSTALL_FAILURES                                                                           \
	FAILURE(403,                                                                               \
		"package_blocked package_not_allowed package_lookalike package_not_pinned "        \
		"too_many_packages policy_refused",                                                \
		"A rule of the operator refuses it; the message names the rule."),                 \
		FAILURE(413, "package_too_big", "It is too big."),                                 \
		TOO_MUCH("packages_busy package_rate"),                                            \
		FAILURE(501, "not_configured no_installer",                                        \
			"This daemon installs no such packages."),                                 \
		FAILURE(502, "index_unavailable install_failed",                                   \
			"The index or what fetches from it failed."),                              \
		FAILURE(503, "install_failed draining", "Not now."),                               \
		FAILURE(504, "index_timeout", "It took too long.")
#define BAD_PACKAGE(codes_)                                                                        \
	FAILURE(422,                                                                               \
		"invalid_requirement version_not_found build_failed invalid_package "              \
		"hash_mismatch" codes_,                                                            \
		"Invalid or unknown package, or it cannot be installed.")

const struct route routes_packages[] = {
	{ "POST", "/pip_install", "packages", FOR_DAEMON(handle_pip_install),
	  &operation_pip_install,
	  RESPONSES(RESPONSE(200, "PipInstallResult", "Installed."), EVENTS,
		    FAILURE(404, "package_not_found", "The index has no such package."),
		    FAILURE(409, "package_conflict session_ended", "It contradicts what is there."),
		    BAD_PACKAGE(""), INSTALL_FAILURES) },
	{ "POST", SANDBOX "/packages", "packages", FOR_SANDBOX(handle_packages_install),
	  &operation_install_packages,
	  RESPONSES(RESPONSE(200, "PackagesInstalled", "Installed."), EVENTS,
		    FAILURE(404, "no_such_sandbox package_not_found",
			    "No such sandbox of yours, or no such package."),
		    FAILURE(409, "package_conflict session_ended sandbox_stopped",
			    "It contradicts what is there, or the sandbox does not run."),
		    BAD_PACKAGE(" unsupported_language"), INSTALL_FAILURES) },
	{ "GET", SANDBOX "/packages", "packages", FOR_SANDBOX(handle_packages_list),
	  OPERATION("list_packages", "List packages of a sandbox",
		    "Those that were installed into it, or for all of its owner's, and those of its "
		    "image that they use; the latest request first. The image's own tools list all "
		    "packages of the image, in the sandbox: pip list, npm ls -g.",
		    FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(200, "PackageList", "The installed packages."), NO_SANDBOX) },
	{ 0 },
};
