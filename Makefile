# SPDX-License-Identifier: Apache-2.0
# The front door. Meson builds; this file names the things people do.

BUILD ?= build
ASAN := $(BUILD)-asan
FUZZ := $(BUILD)-fuzz
RELEASE := $(BUILD)-release
PREFIX ?= /usr/local
DESTDIR ?=
SECS ?= 30
T ?=

# Debian's own interpreter and pytest, not one that a PATH may put before it.
PYTEST := /usr/bin/python3 -m pytest -q -p no:cacheprovider
MESON_TEST := --no-rebuild --print-errorlogs
SERVE ?=
SNIPPET := print("hello from a cell:", 6 * 7)

export ASAN_OPTIONS ?= strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1

.PHONY: all build run serve test unit integ kernels serve-test serve-api serve-life hostile hostile-quick guest \
	asan asan-quick asan-build asan-unit asan-integ asan-serve fuzz soak bench lint fmt install clean help
.DEFAULT_GOAL := build
all: build

help:
	@echo 'make            build into $(BUILD)/'
	@echo 'make serve      install what is missing, build, start the daemon on 127.0.0.1:8001'
	@echo 'make run        install what is missing, build, run a first snippet in a cell'
	@echo 'make test       everything that has to pass: units, fuzz corpora, integration, kernels, the'
	@echo '                daemon, hostile (quick selection), guests, lint; a selection of it again under'
	@echo '                ASan and UBSan (asan-quick)'
	@echo 'make hostile    the whole hostile suite, which also judges times: for a quiet machine'
	@echo 'make guest      the other cgroup layouts, in small QEMU guests'
	@echo 'make asan       units, integration and the daemon on ASan+UBSan binaries ($(ASAN)/)'
	@echo 'make fuzz       libFuzzer, T=target (default: all) SECS=seconds per target'
	@echo 'make soak       SOAK="--count 100000 --storm 120": mixed executions, then kill -9 of everything'
	@echo 'make bench      against plain python3, bubblewrap, crun, runc, podman, docker'
	@echo 'make lint fmt   static checks; formatting'
	@echo 'make install    PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "meson is missing: tools/deps.sh build" >&2; exit 1; }
	meson setup $(BUILD)

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

# What makes cells and looks for what is left of them has no neighbour that makes cells: integ and the sanitized integ run
# one after the other, beside what only computes. The halves of the daemon's tests mostly wait, and each looks after its own
# daemons alone. The hostile suite judges the host as a whole and runs by itself.
test:
	@tools/deps.sh build test guest lint
	@tools/steps.sh build -- \
		'integ asan-integ' 'asan-build kernels guest' -- \
		'serve-api asan-serve' 'serve-life' 'unit asan-unit lint' -- \
		hostile-quick

unit: build
	@meson test -C $(BUILD) $(MESON_TEST)

integ: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/integ

# The kernels' drivers by themselves, and the daemon with everything behind it.
kernels: build
	@$(PYTEST) tests/guest_kernels

SERVE_LIFE := $(addprefix tests/serve/test_,auth.py isolation.py life.py pool.py)
SERVE_ASAN := $(addprefix tests/serve/test_,execute.py errors.py stream.py sandboxes.py)

serve-test: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/serve

# Its two halves, for two processors: how it lives, and all the rest.
serve-life: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) $(SERVE_LIFE)

serve-api: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) $(addprefix --ignore=,$(SERVE_LIFE)) tests/serve

hostile: build
	@CAISSON_HOSTILE_EXACT=1 CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/hostile

hostile-quick: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) -m quick tests/hostile

# Cgroup layouts that this machine does not have, in small QEMU guests (no KVM needed).
guest: build
	@CAISSON_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/guest

$(ASAN)/build.ninja:
	meson setup -Doptimization=1 -Db_sanitize=address,undefined $(ASAN)

# More than one of these may ask for the build at once.
asan-build: $(ASAN)/build.ninja
	@flock $(ASAN) meson compile -C $(ASAN)

asan-unit: asan-build
	@meson test -C $(ASAN) $(MESON_TEST)

# Without the loops that kill it at every step: they are about what is left on the host, not about memory.
asan-integ: asan-build
	@CAISSON_BUILD=$(abspath $(ASAN)) CAISSON_LEAK_RUNS=20 $(PYTEST) --deselect tests/integ/test_crash.py::test_killed_at_every_step \
		--deselect tests/integ/test_crash.py::test_killed_at_random_moments tests/integ

asan-serve: asan-build
	@CAISSON_BUILD=$(abspath $(ASAN)) $(PYTEST) $(SERVE_ASAN)

asan-quick: asan-unit asan-integ asan-serve

asan: asan-unit asan-serve
	@CAISSON_BUILD=$(abspath $(ASAN)) $(PYTEST) tests/integ

$(FUZZ)/build.ninja:
	CC=clang meson setup -Dfuzz=true -Db_sanitize=address,undefined $(FUZZ)

fuzz:
	@tools/deps.sh build fuzz
	@$(MAKE) --no-print-directory $(FUZZ)/build.ninja
	@meson compile -C $(FUZZ)
	@tools/fuzz.sh $(FUZZ) $(SECS) $(T)

SOAK ?=
soak: build
	@CAISSON_BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/soak/soak.py $(SOAK)

bench:
	@tools/deps.sh build
	@$(MAKE) --no-print-directory build
	@tools/deps.sh bench || echo "bench: going on with the peers that are here"
	@/usr/bin/python3 tests/bench/bench.py --build $(BUILD) --readme README.md $(BENCH)
	@/usr/bin/python3 tests/bench/serve.py --build $(BUILD) --readme README.md $(SERVE_BENCH)

lint: build
	@tools/lint.sh $(BUILD)

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
