# SPDX-License-Identifier: Apache-2.0
# Targets for people and for continuous integration. Meson does the build.

BUILD ?= build
ASAN := $(BUILD)-asan
FUZZ := $(BUILD)-fuzz
RELEASE := $(BUILD)-release
PREFIX ?= /usr/local
DESTDIR ?=
SECS ?= 30
T ?=

# Debian's own interpreter and pytest, not others that are earlier in PATH.
PYTEST := /usr/bin/python3 -m pytest -q -p no:cacheprovider
# More processes than processors: many units wait, for deadlines or for the disk.
MESON_TEST := --no-rebuild --print-errorlogs --num-processes 4
SERVE ?=
SNIPPET := print("hello from a cell:", 6 * 7)

export ASAN_OPTIONS ?= strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1

.PHONY: all build run serve test unit units unit-files integ image-test kernels serve-test serve-api serve-life serve-outside serve-wires packages packages-survey api api-fetch fuzz-api api-coverage mcp mcp-fetch mcp-servers bridge-full jupyter jupyter-clients jupyter-fetch s3 s3-fetch sdk sdk-fetch sdk-full sdk-docker everyday everyday-image everyday-quick hostile hostile-quick hostile-cells hostile-serve hostile-time guest container container-test dist dist-quick dist-test \
	asan asan-quick asan-build asan-unit asan-units asan-integ asan-parsers asan-serve asan-hostile valgrind fuzz soak bench bench-guard lint lint-quick fmt install clean help
.DEFAULT_GOAL := build
all: build

help:
	@echo 'make            build into $(BUILD)/'
	@echo 'make serve      install what is missing, build, start the daemon on 127.0.0.1:8001'
	@echo 'make run        install what is missing, build, run a first snippet in a cell'
	@echo 'make test       everything that has to pass: units, fuzz corpora, integration, kernels, the'
	@echo '                daemon, hostile (quick selection), guests, lint; a selection of it again under'
	@echo '                ASan and UBSan (asan-quick)'
	@echo 'make mcp        the conformance suite of the Model Context Protocol, and real clients (part of make test)'
	@echo 'make mcp-servers  code in cells calls MCP servers from npm'
	@echo 'make bridge-full  calls of MCP servers: real ones, hostile ones, the suite for clients; make test has a part of it'
	@echo 'make s3         buckets against MinIO, which make s3-fetch builds: all of it, also a gigabyte and a bucket that goes away'
	@echo 'make jupyter    real clients of the Jupyter wire (part of make test), and JupyterLab in a browser'
	@echo 'make sdk        the Python library: its wheel in a clean environment against a daemon, ruff, mypy (part of make test);'
	@echo '                make sdk-full has the tests too that make test leaves out for time; make sdk-docker its tests with'
	@echo '                a Docker daemon, which it starts'
	@echo 'make image-test all tests of images: registries, hostile archives, kills; make test has a part of them'
	@echo 'make serve-test all tests of the daemon, those too that make test leaves out for time'
	@echo 'make packages   numpy, pandas and others from PyPI and npm, uv beside pip, kills in the middle, hostile packages'
	@echo 'make packages-survey  install and import the 300 and 200 most used packages of PyPI and npm; ONLY=names JOBS=3 LANGUAGE=python'
	@echo 'make everyday   hundreds of things that agents do, on the image host and on an image of Debian packages, which it builds'
	@echo '                once: ONLY="python and csv" (names), IMAGE="host" (images); make test has a quick part'
	@echo 'make hostile    the whole hostile suite, which also judges times: for a quiet machine'
	@echo 'make guest      the other cgroup layouts, in small QEMU guests'
	@echo 'make container  the root file system of the container image, from Debian packages; then docker build -t sandbox:latest .'
	@echo 'make container-test  the image in containers of a real Docker daemon'
	@echo 'make dist       the files of a release of the last commit in $(BUILD)/dist: the Debian package, the source, the Python library,'
	@echo '                a bill of materials (SPDX), checksums'
	@echo 'make dist-test  makes them, makes them again elsewhere, installs, upgrades and purges the package in machines that boot'
	@echo 'make asan       units, integration, the daemon and the hostile suite on ASan+UBSan binaries ($(ASAN)/)'
	@echo 'make valgrind   units under memcheck'
	@echo 'make fuzz-api   schemathesis against a daemon, SECS=seconds'
	@echo 'make fuzz       libFuzzer, T=target (default: all) SECS=seconds per target'
	@echo 'make soak       hours: 100,000 mixed executions, kill -9 of everything, every fault, every byte;'
	@echo '                SOAK="--count 2000 --storm 20 --json FILE": the executions and the kills alone, so many'
	@echo 'make bench      against plain python3, bubblewrap, crun, runc, podman, docker'
	@echo 'make bench-guard  system calls and page faults of a print(1), against their budget; RECORD=yes writes it'
	@echo 'make lint fmt   static checks; formatting'
	@echo 'make install    PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "meson is missing: tools/deps.sh build" >&2; exit 1; }
	meson setup -Dunits=false $(BUILD)

build: $(BUILD)/build.ninja
	@meson compile -C $(BUILD)

run:
	@tools/deps.sh build
	@$(MAKE) --no-print-directory build
	@printf '%s\n' '$$ caisson run '\''$(SNIPPET)'\'
	@$(BUILD)/caisson run '$(SNIPPET)'

# The daemon, in the foreground; Ctrl-C ends it. SERVE has further options: make serve SERVE='--preload numpy'
serve:
	@tools/deps.sh build
	@$(MAKE) --no-print-directory build
	@exec $(BUILD)/caisson serve $(SERVE)

# integ and asan-parsers look for leftovers of cells on the whole machine: no other step that makes cells runs beside them.
# The suites of the daemon mostly wait, and each looks only at its own daemons. The two halves of the hostile suite judge the
# host, each without the processes of the other; nothing else runs beside them.
test:
	@tools/deps.sh build test guest lint jupyter
	@tools/steps.sh 'build integ asan-parsers' 'asan-build guest' 'mcp-fetch api-fetch jupyter-fetch sdk-fetch' -- \
		'serve-api asan-serve api' 'serve-life mcp jupyter-clients' 'serve-wires sdk kernels' \
		'asan-units unit-files lint-quick dist-quick serve-outside everyday-quick' -- \
		'hostile-cells' 'hostile-serve' -- 'hostile-time api-coverage'

# There are more units than all other programs together, and only these targets need all of them.
units: build
	@meson configure -Dunits=true $(BUILD)
	@meson compile -C $(BUILD)

unit: units
	@meson test -C $(BUILD) $(MESON_TEST)

# Those that asan-units leaves out; make test runs every unit once.
UNIT_FILES := front-spool store-store_damage store-store_prefix
unit-files: build
	@meson test -C $(BUILD) $(MESON_TEST) $(UNIT_FILES)

integ: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m 'not slow' tests/integ

# Images: all tests, including those with registries that are too slow for make test.
image-test: build
	@tools/deps.sh test
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) $(wildcard tests/integ/test_image*.py)

# The kernels' drivers by themselves, and the daemon with all its services.
kernels: build
	@$(PYTEST) tests/guest_kernels

SERVE_LIFE := $(addprefix tests/serve/test_,adopt.py auth.py floods.py isolation.py life.py mcp_stdio.py pool.py state.py)
SERVE_WIRES := $(addprefix tests/serve/test_,attach.py cli_daemon.py cli_remote.py cli_terminal.py jupyter.py mcp_raw.py mcp_tools.py mcp_wires.py \
	ports.py processes.py stream.py)
SERVE_OUTSIDE := $(addprefix tests/serve/test_,bridge.py code_mode.py egress.py tool_rules.py packages.py packages_images.py packages_index.py packages_life.py packages_npm.py \
	secrets.py secrets_bound.py shell_habits.py workspaces.py workspaces_life.py workspaces_user.py)
SERVE_SCHEMA := tests/serve/test_schema.py
SERVE_ASAN := $(addprefix tests/serve/test_,execute.py errors.py)

# The answers of the daemons in all tests, for api-coverage.
COVERAGE := $(abspath $(BUILD))/api-coverage

serve-test: build
	@mkdir -p $(COVERAGE)
	@CAISSON_COVERAGE=$(COVERAGE) CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/serve

# Its parts, which run side by side: how the daemon starts and ends; the wires (WebSocket, streams, MCP, Jupyter, ports, the
# command line); services outside of it; and all the rest.
serve-life: SERVE_FILES := $(SERVE_LIFE)
serve-wires: SERVE_FILES := $(SERVE_WIRES)
serve-outside: SERVE_FILES := $(SERVE_OUTSIDE)
serve-api: SERVE_FILES := $(addprefix --ignore=,$(SERVE_LIFE) $(SERVE_WIRES) $(SERVE_OUTSIDE) $(SERVE_SCHEMA)) tests/serve
serve-api serve-life serve-outside serve-wires: build
	@mkdir -p $(COVERAGE)
	@CAISSON_COVERAGE=$(COVERAGE) CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m 'not slow' $(SERVE_FILES)

# The OpenAPI document, by third-party tools; and for longer, with another seed each time.
api: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) $(SERVE_SCHEMA)

# Tests whose tools could not be fetched are skipped, with the reason.
api-fetch: build
	@mkdir -p $(BUILD)/api-tools
	@for what in python npm; do tools/api-tools.sh $(BUILD)/api-tools $$what || :; done

fuzz-api: build
	@CAISSON_FUZZ_SECONDS=$(SECS) CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -k schemathesis $(SERVE_SCHEMA)

# After the parts of serve-test: compares the answers that the tests saw with those in the document.
api-coverage: build
	@$(BUILD)/tests/unit/unit-front-test_openapi --print >$(COVERAGE)/openapi.json
	@tools/api-coverage.py $(COVERAGE)/openapi.json $(COVERAGE)

# The Model Context Protocol by its own conformance suite, and by third-party clients. npm and pip bring them into the build
# directory; tests whose clients they cannot bring are skipped, with the reason.
mcp: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/mcp

bridge-full: build
	@CAISSON_BRIDGE_FULL=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/serve/test_bridge.py tests/mcp/test_bridge_servers.py tests/mcp/test_bridge_conformance.py

mcp-fetch: build
	@mkdir -p $(BUILD)
	@CAISSON_BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/mcp/fetch.py

# Packages: from the real indexes if they answer, and all slow and hostile tests of packages.
packages: build
	@CAISSON_REAL_INDEX=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) $(addprefix tests/serve/test_packages,.py _images.py _life.py _npm.py _real.py)
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/hostile/test_hostile_packages.py

# The packages that people use most, each in a fresh sandbox; from the indexes that the daemon finds. LANGUAGE is also a variable of
# locales, so only the command line counts.
ONLY ?=
JOBS ?= 3
packages-survey: build
	@/usr/bin/python3 tests/survey/survey.py --build $(BUILD) --output docs --jobs $(JOBS) --only '$(ONLY)' \
		$(if $(filter command,$(firstword $(origin LANGUAGE))),--language $(LANGUAGE))

# Buckets against a third-party server: MinIO, or a smaller one. make test runs the quick tests if there is a server; the tests
# with a gigabyte and with buckets that go away run only here.
s3: build s3-fetch
	@CAISSON_S3_FULL=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/serve/test_s3.py

s3-fetch: build
	@tools/s3-server.sh $(BUILD)/s3 minio || tools/s3-server.sh $(BUILD)/s3 npm || :

# Notebooks, by Jupyter's own clients; and JupyterLab in a browser, which brings half a gigabyte.
jupyter: build
	@tools/deps.sh jupyter browser
	@CAISSON_BROWSER=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/jupyter

jupyter-clients: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/jupyter

jupyter-fetch: build
	@mkdir -p $(BUILD)
	@CAISSON_BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/jupyter/real_lib.py

# The Python library. Its tests run from the wheel, in an environment that has nothing else; ruff and mypy come from PyPI.
SDK := $(abspath $(BUILD))/sdk
SDK_TEST = CAISSON_BUILD=$(abspath $(BUILD)) $(SDK)/venv/bin/python -m pytest -q -p no:cacheprovider

sdk: build
	@sdk/python/tools/lint.sh check $(SDK)
	@sdk/python/tools/install.py $(SDK)
	@$(SDK_TEST) -m 'not slow' sdk/python/tests

sdk-full: build
	@tools/deps.sh test docker
	@sdk/python/tools/docker-image.sh $(SDK)
	@sdk/python/tools/extras.sh $(SDK)
	@sdk/python/tools/lint.sh check $(SDK)
	@sdk/python/tools/install.py $(SDK)
	@$(SDK_TEST) sdk/python/tests

# The contract of all runtimes of sessions, and the docker runtime's own tests, with a Docker daemon that they start.
sdk-docker: build
	@tools/deps.sh test docker
	@sdk/python/tools/docker-image.sh $(SDK)
	@sdk/python/tools/install.py $(SDK)
	@$(SDK_TEST) $(addprefix sdk/python/tests/test_,contract.py docker.py)

sdk-fetch: build
	@sdk/python/tools/lint.sh fetch $(SDK)

# Everyday work: what agents type, and what a user has to see then (tests/everyday). ONLY selects cases by words of their names, as
# pytest's -k does; IMAGE has the images. Packages come from the machine's indexes. The image is built once and kept.
ONLY ?=
IMAGE ?= host $(EVERYDAY_IMAGE)
EVERYDAY_IMAGE := caisson/everyday
EVERYDAY_STORE ?= $(abspath $(BUILD))/everyday/images
EVERYDAY_PACKAGES := python3-pip,python3-venv,npm,gcc,g++,libc6-dev,make,jq,sqlite3,procps,zip,unzip,xz-utils,bzip2,file,patch,bc,openssl,less
EVERYDAY = CAISSON_EVERYDAY_STORE=$(EVERYDAY_STORE) CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST)

everyday: build $(if $(filter $(EVERYDAY_IMAGE),$(IMAGE)),everyday-image)
	@tools/deps.sh test everyday || echo "everyday: going on with the programs that are here"
	@CAISSON_EVERYDAY_IMAGES='$(IMAGE)' $(EVERYDAY) $(if $(ONLY),-k '$(ONLY)') tests/everyday

# The part of make test: the image host alone, without packages.
everyday-quick: build
	@$(EVERYDAY) -m quick tests/everyday

# Tests on an image that could not be built are skipped, with the reason.
everyday-image: build
	@tools/deps.sh test
	@mkdir -p $(dir $(EVERYDAY_STORE))
	@$(BUILD)/caisson image inspect --store $(EVERYDAY_STORE) $(EVERYDAY_IMAGE) >/dev/null 2>&1 || \
		$(BUILD)/caisson image build --store $(EVERYDAY_STORE) --package $(EVERYDAY_PACKAGES) $(EVERYDAY_IMAGE) || :

# Code in cells and MCP servers from npm.
mcp-servers: build
	@CAISSON_SERVERS=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/mcp/test_code_servers.py

hostile: build
	@CAISSON_HOSTILE_EXACT=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/hostile

hostile-quick: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m quick tests/hostile

# Its parts. Tests of processor time, and tests that fork without end, run alone: the dead of a fork bomb have no parent for a
# moment. Tests that leave things where the whole host sees them are in one part, so that they follow each other.
HOSTILE_TIME := $(addprefix tests/hostile/test_,processor_time.py hostile_images.py)
HOSTILE_CELLS := $(addprefix tests/hostile/test_,file_calls.py resource_exhaustion.py run_output.py process_lifetime.py counters.py linux_interfaces.py cell_filesystem.py \
	neighbours.py host_sockets.py posture.py proc.py syscall_matrix.py)
hostile-time: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m quick $(HOSTILE_TIME)

hostile-cells: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m quick $(HOSTILE_CELLS)

hostile-serve: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m quick $(addprefix --ignore=,$(HOSTILE_CELLS) $(HOSTILE_TIME)) tests/hostile

# Cgroup layouts that this machine does not have, in small QEMU guests (no KVM needed).
guest: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/guest

# The archives that the Dockerfile adds: packages of Debian, and this tree. No registry, no container engine (docs/container.md).
container:
	@tools/deps.sh build container
	@tools/container.sh

# The image in containers of the Docker daemon that `docker` reaches, or of Debian's, which it starts and ends. Tests that lack one are
# skipped, with the reason.
container-test: build
	@tools/deps.sh container-test guest || echo "container-test: going on with what is here"
	@$(MAKE) --no-print-directory container || echo "container-test: going on with the last image, if there is one"
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/container

# The files of a release, from the last commit (tools/dist.sh).
dist:
	@tools/deps.sh build dist
	@tools/dist.sh $(BUILD)/dist

# All tests of them: in clean Debian roots, a container that boots and a QEMU guest.
dist-test: dist
	@tools/deps.sh dist-test
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/dist

# The part that needs no package.
dist-quick: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m quick tests/dist

$(ASAN)/build.ninja:
	meson setup -Doptimization=1 -Dc_args=-g1 -Db_sanitize=address,undefined $(ASAN)

# More than one of these may ask for the build at once.
asan-build: $(ASAN)/build.ninja
	@flock $(ASAN) meson compile -C $(ASAN)

asan-unit: asan-build
	@meson test -C $(ASAN) $(MESON_TEST)

# Without the units that write and damage thousands of files, which take more time than all the others.
asan-units: asan-build
	@meson test -C $(ASAN) $(MESON_TEST) $$(meson test -C $(ASAN) --no-rebuild --list 2>/dev/null | sed -n 's,^caisson:[a-z]* / ,,p' | grep -vxF $(addprefix -e ,$(UNIT_FILES)))

# Without the loops that kill it at every step: they test leftovers on the host, not memory.
asan-integ: asan-build
	@CAISSON_BUILD=$(abspath $(ASAN)) CAISSON_LEAK_RUNS=20 $(PYTEST) --deselect tests/integ/test_crash.py::test_killed_at_every_step \
		--deselect tests/integ/test_crash.py::test_killed_at_random_moments tests/integ

# The part of it that reads untrusted input.
asan-parsers: asan-build
	@CAISSON_BUILD=$(abspath $(ASAN)) $(PYTEST) tests/integ/test_bad_input.py tests/integ/test_files.py tests/integ/test_files_tar.py

asan-serve: asan-build
	@CAISSON_BUILD=$(abspath $(ASAN)) $(PYTEST) $(SERVE_ASAN)

asan-quick: asan-units asan-parsers asan-serve

# The units on ordinary binaries under memcheck, which detects undefined values; the sanitizers of gcc do not.
valgrind: units
	@tools/deps.sh valgrind
	@tools/valgrind.sh $(BUILD)

asan-hostile: asan-build
	@CAISSON_BUILD=$(abspath $(ASAN)) $(PYTEST) -m quick tests/hostile
	@CAISSON_HOSTILE_EXACT=1 CAISSON_BUILD=$(abspath $(ASAN)) $(PYTEST) tests/hostile/test_failed_allocations.py

# All of it: units, the command line, the daemon, and the attacks on them.
asan: asan-unit asan-integ
	@CAISSON_BUILD=$(abspath $(ASAN)) $(PYTEST) --ignore=$(SERVE_SCHEMA) tests/serve
	@$(MAKE) --no-print-directory asan-hostile

$(FUZZ)/build.ninja:
	CC=clang meson setup -Dfuzz=true -Db_sanitize=address,undefined $(FUZZ)

fuzz:
	@tools/deps.sh build fuzz
	@$(MAKE) --no-print-directory $(FUZZ)/build.ninja
	@meson compile -C $(FUZZ)
	@tools/fuzz.sh $(FUZZ) $(SECS) $(T)

# These take hours: the soak, then a storm of ten minutes, every prefix of the store's log, a fault of every system call,
# a name exchanged 100,000 times under every file call, a system call fuzzer in a cell of a QEMU guest.
# With SOAK it is the soak alone, with these options.
SOAK ?=
SOAKER := CAISSON_BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/soak/soak.py
soak: build
ifneq ($(SOAK),)
	@$(SOAKER) $(SOAK)
else
	@$(SOAKER)
	@$(SOAKER) --count 0 --storm 600 --pause 1:3 --victims daemon --rate 20
	@CAISSON_EVERY_BYTE=1 $(BUILD)/tests/unit/unit-store-test_store_prefix
	@CAISSON_SLOW_READERS=600 CAISSON_HOSTILE_EXACT=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/hostile/test_kills_and_load.py -k slow_readers
	@CAISSON_SWEEP=all CAISSON_HOSTILE_EXACT=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/hostile/test_syscall_faults.py
	@CAISSON_SWAPS=100000 CAISSON_HOSTILE_EXACT=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/hostile/test_file_calls.py -k test_swapped_names
	@CAISSON_FUZZ_SECONDS=1800 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/guest/test_fuzz.py
endif

bench:
	@tools/deps.sh build
	@$(MAKE) --no-print-directory build
	@tools/deps.sh bench || echo "bench: going on with the peers that are here"
	@/usr/bin/python3 tests/bench/bench.py --build $(BUILD) --output docs/benchmarks.md $(BENCH)
	@/usr/bin/python3 tests/bench/serve.py --build $(BUILD) --output docs/benchmarks.md $(SERVE_BENCH)
	@/usr/bin/python3 tests/bench/streams.py --build $(BUILD) --output docs/benchmarks.md $(STREAM_BENCH)
	@/usr/bin/python3 tests/bench/search.py --build $(BUILD) --output docs/benchmarks.md
	@/usr/bin/python3 tests/bench/tools.py --build $(BUILD) --output docs/benchmarks.md $(TOOLS_BENCH)
	@tools/deps.sh jupyter || echo "bench: going on without jupyter-server"
	@/usr/bin/python3 tests/bench/jupyter.py --build $(BUILD) --output docs/benchmarks.md $(JUPYTER_BENCH)
	@/usr/bin/python3 tests/bench/gate.py --build $(BUILD) --output docs/benchmarks.md $(GATE_BENCH)
	@/usr/bin/python3 tests/bench/image_pull.py --build $(BUILD) --output docs/benchmarks.md $(PULL_BENCH)
	@/usr/bin/python3 tests/bench/image_start.py --build $(BUILD) --output docs/benchmarks.md $(START_BENCH)
	@/usr/bin/python3 tests/bench/sdk.py --build $(BUILD) --output docs/benchmarks.md $(SDK_BENCH)

# Counts, which do not depend on the load. RECORD=yes accepts those of this tree.
RECORD ?=
bench-guard: build
	@CAISSON_BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/bench/guard.py --build $(BUILD) $(if $(RECORD),--record)

lint: units
	@tools/lint.sh $(BUILD)

# Without clang-tidy and cppcheck, which take more time than everything else in it.
lint-quick: build
	@LINT_TIDY=no tools/lint.sh $(BUILD)

fmt:
	@find src tools tests -name '*.[ch]' -print0 | xargs -0 clang-format -i

# A build of its own, because the prefix is compiled in.
install:
	@test -f $(RELEASE)/build.ninja || meson setup -Dtests=false --prefix $(PREFIX) $(RELEASE)
	@meson configure -Dprefix=$(PREFIX) $(RELEASE)
	@meson compile -C $(RELEASE)
	@DESTDIR=$(DESTDIR) meson install --no-rebuild -C $(RELEASE)

clean:
	rm -rf $(BUILD) $(ASAN) $(FUZZ) $(RELEASE)
