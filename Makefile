# A thin front to CMake. `make help` lists what there is.
# SPDX-License-Identifier: Apache-2.0

BUILD ?= build
PREFIX ?= /usr/local
# Warnings are errors only in CI, so that a newer compiler does not stop anybody.
WERROR := $(if $(filter true 1,$(CI)),ON,OFF)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
TEST_ARGS ?=
CMAKE_ARGS ?=
LAUNCHER := $(if $(shell command -v ccache 2>/dev/null),-DCMAKE_C_COMPILER_LAUNCHER=ccache)

.DEFAULT_GOAL := all
.PHONY: all setup configure build demo check check-all lint wheel docs install uninstall clean help

# What make, make demo and make install build: all but the tests.
PRODUCT := TARGET=rondo_product

all: ## Build build/rondo, the libraries and the examples
	@CMAKE_ARGS="$(CMAKE_ARGS)" tools/setup --check
	@$(MAKE) --no-print-directory build $(PRODUCT)

setup: ## Install what is missing with apt (RONDO_NO_INSTALL=1 only lists it)
	@CMAKE_ARGS="$(CMAKE_ARGS)" tools/setup

# A build directory that came along with a copied tree belongs to where it was made.
FRESH = $(shell test -f $(BUILD)/CMakeCache.txt && \
    ! grep -qxF 'CMAKE_HOME_DIRECTORY:INTERNAL=$(CURDIR)' $(BUILD)/CMakeCache.txt && echo --fresh)

# A first configuration that fails (for want of a compiler, say) leaves nothing behind for the next.
configure:
	@test -f $(BUILD)/CMakeCache.txt; had_cache=$$?; \
	cmake $(FRESH) -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DRONDO_WERROR=$(WERROR) \
	    $(LAUNCHER) $(CMAKE_ARGS) > $(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; \
	    [ $$had_cache = 0 ] || rm -rf $(BUILD)/CMakeCache.txt $(BUILD)/CMakeFiles; exit 1; }
	@rm -f $(BUILD).log

build: configure
	@cmake --build $(BUILD) -j $(JOBS) $(if $(TARGET),--target $(TARGET))

demo: setup ## Bench a network eagerly and replayed, side by side
	@$(MAKE) --no-print-directory build $(PRODUCT)
	@tools/demo $(BUILD)/rondo

check: LABEL = short
check: setup ## Run the tests that take seconds and need no GPU: minutes in all

check-all: LABEL = long
check-all: setup ## Run the tests that `make check` leaves out: full sweeps, kernel texts, random calls

check check-all:
	@$(MAKE) --no-print-directory build
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -L $(LABEL) -j $(JOBS) $(TEST_ARGS)
	@echo "Cases, and where allocations and driver calls failed:"
	@grep -ahE '^rondo_(conformance|inside): [0-9]+ cases on|swept [0-9]+ (points|allocations)|points swept|a sample, --every|^rondo_sequences: |^peer table: ' \
	    $(BUILD)/Testing/Temporary/LastTest.log | sort -u | sed 's/^/  /' || true

lint: ## Check formatting, include arrows, headers and doc comments
	@tools/lint

wheel: setup ## Make the Python wheel, and test it in a bare environment (uses the package registry)
	@python/test_wheel

docs: ## Make the documentation site in build/docs/html, and man pages of the API if there is doxygen
	@tools/docs $(BUILD)/docs

install: ## Install to PREFIX (default /usr/local), below DESTDIR if set
	@$(MAKE) --no-print-directory build $(PRODUCT)
	@cmake --install $(BUILD) --prefix $(PREFIX)

uninstall: ## Remove what the last install from this build put in place
	@cmake --build $(BUILD) --target uninstall

clean: ## Remove the build directories
	@rm -rf build build-wheel build-debug build-asan build-tsan build-fuzz build-arm64 build-arm64-sysroot

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  Variables: BUILD, PREFIX, DESTDIR, JOBS, CMAKE_ARGS, TEST_ARGS, CI=true (warnings are errors)"
