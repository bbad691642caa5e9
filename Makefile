# Everything there is to do with fastwin. `make` alone lists it. A target sets up what it needs first, once.
#   PYTHON=python3.12   the interpreter that .venv is made with (3.11 or newer)
#   ARGS="..."          further arguments for the demo, pytest or the benchmarks
#   WORKERS=2           processes that share the tests
#   SPARK=4.0.5         the version of Spark that test-spark installs beside .venv

PYTHON ?= python3
ARGS ?=
WORKERS ?= 2
SPARK ?=
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

export PIP_DISABLE_PIP_VERSION_CHECK := 1
PY := .venv/bin/python
# A module is compiled when it is first imported: most of them never are.
PIP_INSTALL := $(PY) -m pip install --quiet --no-compile
# What makes a release: for each Python an environment, since it builds wheels for its own.
TOOLS := build/tools-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
KERNELS := $(shell find fastwin -name '*.pyx' -o -name '*.pxd')
STUBBED := $(subst /,.,$(basename $(shell find fastwin -name '*.pyi')))
CHECKED_TESTS := $(addprefix tests/,aggregates columns core functions golden operators run spec state timeline triggers windows test_times.py) \
  $(patsubst %,tests/store/test_%.py,all_aggregates distinct many_keys parts states stores)
THREAD_TESTS := $(patsubst %,tests/run/test_%.py,guard join_threads pool threads threads_at_once) \
  tests/core/sessions/test_order_by_time.py tests/core/memory/test_regions.py::test_threads_move_rows_at_once
# A test that takes as long prints where all threads are. (No option of pyproject.toml: the sanitizers do without it.)
LIMIT := -o faulthandler_timeout=600
# The order of files is tests/conftest.py's: long ones first.
DIVIDED = -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(LIMIT)

.PHONY: help demo test test-long test-spark soak bench lint format wheel manylinux compile docs test-debug test-asan test-tsan clean distclean java servers
.PHONY: check-python check-compiler

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r name text; do \
	  printf '  make %-12s %s\n' "$$name" "$$text"; done

demo: .venv/.compiled | java ## set up, then run the demo on Spark (make demo ARGS=--help)
	$(PY) -m fastwin demo $(ARGS)

test: .venv/.compiled build/spark.jsa | java servers ## set up, then run the tests, but the long ones
	$(PY) -m pytest $(DIVIDED) --benchmark-disable $(ARGS)

test-spark: .venv/.compiled build/spark.jsa | java servers ## the tests on Spark with another version of it (make test-spark SPARK=4.0.5)
	@[ -n '$(SPARK)' ] || { echo "Say which version of Spark, for example: make test-spark SPARK=4.0.5" >&2; exit 1; }
	@$(MAKE) --no-print-directory build/spark-$(SPARK)/.installed
	FASTWIN_NEWER_PYTHON='$(CURDIR)/$(PY)' build/spark-$(SPARK)/bin/python -m pytest $(DIVIDED) $(or $(ARGS),tests/spark)

test-long: .venv/.compiled build/spark.jsa | java servers ## set up, then run the tests that `make test` leaves out because they take long
	FASTWIN_LONG=1 $(PY) -m pytest $(DIVIDED) --benchmark-disable -m long $(ARGS)

soak: .venv/.compiled | java ## kill and disturb queries on Spark for about two hours and a half, and print what came of it
	$(PY) -m tests.soak $(ARGS)

bench: .venv/.compiled | java servers ## run the benchmarks, print the table, keep JSON and chart in bench/results
	$(PY) -m bench $(ARGS)
	$(if $(ARGS),,$(PY) -m bench.matrix)
	$(if $(ARGS),,$(PY) -m bench.growth)
	$(if $(ARGS),,$(PY) -m bench.memory)
	$(if $(ARGS),,$(PY) -m bench.store_growth)
	$(if $(ARGS),,$(PY) -m bench.spark_state)

lint: .venv/.compiled ## ruff, cython-lint, mypy, and the stubs against the compiled modules
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	PATH="$(CURDIR)/.venv/bin:$$PATH" cython-lint fastwin
	.venv/bin/mypy
	$(if $(STUBBED),.venv/bin/stubtest --concise --ignore-disjoint-bases --ignore-unused-allowlist --allowlist .ci/stubtest.allow --mypy-config-file pyproject.toml $(STUBBED))

docs: .venv/.compiled .venv/.documented ## build the documentation site into build/site (a warning, such as of a broken link, fails)
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict $(ARGS)
	@echo "The site is in build/site. To read it with its search: $(PY) -m http.server --bind 127.0.0.1 --directory build/site"

format: .venv/.installed ## let ruff format the Python files and mend what it can
	.venv/bin/ruff check --fix-only .
	.venv/bin/ruff format .

# It needs nothing of the development environment: the build brings its own, and the wheel is built from the sdist alone.
wheel: $(TOOLS)/.ready | check-compiler ## build sdist and wheel into dist/, and check them as an index would
	$(PYTHON) .ci/changelog.py
	rm -rf dist
	$(TOOLS)/bin/python -m build $(ARGS)
	$(TOOLS)/bin/python -m twine check --strict dist/*
	$(TOOLS)/bin/check-wheel-contents dist/*.whl

manylinux: wheel ## make the wheel fit for other Linux machines, and try it in an empty environment without a compiler
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" $(TOOLS)/bin/python -m auditwheel repair --wheel-dir build/repaired dist/*-linux_*.whl
	rm -f dist/*-linux_*.whl
	mv build/repaired/*.whl dist/
	$(PYTHON) -m venv --clear build/bare
	build/bare/bin/python -m pip install --quiet dist/*.whl
	cd build/bare && CC=/nowhere bin/python ../../.ci/smoke.py

compile: .venv/.compiled ## compile the kernels in place

test-debug: .venv/.compiled | servers ## kernels with bounds and overflow checks: unit, property and boundary tests
	$(call checked_build,debug,FASTWIN_DEBUG=1)
	cd build/debug && ../../$(PY) -m pytest $(CHECKED_TESTS) $(LIMIT) $(ARGS)

test-asan: .venv/.compiled | servers ## the same under AddressSanitizer
	@library="$$($(CC) -print-file-name=libasan.so)"; [ -f "$$library" ] || \
	  { echo "The compiler $(CC) has no AddressSanitizer library: install gcc with libasan, or choose another with CC=..." >&2; exit 1; }
	$(call checked_build,asan,FASTWIN_ASAN=1)
	cd build/asan && LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so.6)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
	  ARROW_DEFAULT_MEMORY_POOL=system ../../$(PY) -m pytest $(CHECKED_TESTS) -p no:cacheprovider -p no:faulthandler --capture=sys $(ARGS)

test-tsan: .venv/.compiled ## tests of threads under ThreadSanitizer
	@library="$$($(CC) -print-file-name=libtsan.so)"; [ -f "$$library" ] || \
	  { echo "The compiler $(CC) has no ThreadSanitizer library: install gcc with libtsan, or choose another with CC=..." >&2; exit 1; }
	$(call checked_build,tsan,FASTWIN_TSAN=1)
	cd build/tsan && LD_PRELOAD="$$($(CC) -print-file-name=libtsan.so)" TSAN_OPTIONS="suppressions=$(CURDIR)/.ci/tsan.suppressions exitcode=66" \
	  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ../../$(PY) -m pytest $(THREAD_TESTS) -p no:cacheprovider -p no:faulthandler --capture=sys $(ARGS)

clean: ## remove what was built (the environment stays)
	rm -rf build dist fastwin.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .venv/.compiled .venv/.kernels
	find fastwin spark_glue tests bench -name '__pycache__' -prune -exec rm -rf {} +
	find fastwin -name '*.so' -delete

distclean: clean ## remove the environment as well
	rm -rf .venv

# --- set-up: one stamp per step, inside .venv so that they vanish with it ---

.venv/.created: | check-python check-compiler
	@echo "Making the environment .venv"
	@$(PYTHON) -m venv --clear .venv
	@touch $@

# The kernels are compiled in a step of their own, so that an edited kernel does not reinstall anything; and with what
# compiles them alone, so that `make --jobs=2` installs all else meanwhile.
.venv/.tools: setup.py pyproject.toml .venv/.created | check-compiler
	@$(PIP_INSTALL) $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@touch $@

.venv/.installed: .venv/.tools
	@echo "Installing the dependencies into .venv (some minutes the first time)"
	@FASTWIN_SKIP_EXTENSIONS=1 $(PIP_INSTALL) --no-build-isolation --use-pep517 --editable '.[dev]'
	@touch $@

.venv/.kernels: setup.py $(KERNELS) .venv/.tools | check-compiler
	@echo "Compiling the kernels"
	@CC='$(CC)' $(PY) setup.py --quiet build_ext --inplace $(if $(filter setup.py,$?),--force)
	@touch $@

.venv/.compiled: .venv/.installed .venv/.kernels
	@touch $@

# The classes that Spark loads, ready for the JVMs of the tests.
build/spark.jsa: tests/support/jvm.py .venv/.installed | .venv/.compiled java
	@echo "Making Spark's classes ready for the tests"
	@rm -f $@
	@env -u SPARK_CONF_DIR -u HADOOP_CONF_DIR -u YARN_CONF_DIR $(PY) -m tests.support.jvm

# An environment with another version of Spark; all else it has from .venv.
build/spark-%/.installed: | .venv/.installed
	@echo "Installing Spark $* into build/spark-$* (about 450 MB)"
	@$(PY) -m venv --clear --without-pip build/spark-$*
	@packages="$$(build/spark-$*/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
	  $(PIP_INSTALL) --no-deps --no-build-isolation --config-settings='--build-option=--compression=stored' \
	    --target "$$packages" pyspark==$*; \
	  $(PY) -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' > "$$packages/rest.pth"
	@touch $@

# What builds the site stays out of the environment until it is asked for.
.venv/.documented: pyproject.toml .venv/.installed
	@echo "Installing what builds the documentation into .venv"
	@$(PIP_INSTALL) $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

$(TOOLS)/.ready: pyproject.toml | check-python
	@echo "Installing what builds and checks wheels into $(TOOLS)"
	@$(PYTHON) -m venv --clear $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["release"])')
	@touch $@

check-python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON): install Python 3.11 or newer, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fastwin needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version): name a newer one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make environments: install its venv package (Debian: apt-get install python3-venv)." >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || \
	  { echo "$(PYTHON) has no C headers: install its development package (Debian: apt-get install python3-dev)." >&2; exit 1; }

check-compiler:
	@command -v $(firstword $(CC)) >/dev/null || \
	  { echo "There is no C compiler $(CC): install one (Debian: apt-get install gcc libc6-dev), or name one with CC=..." >&2; exit 1; }

# Spark runs the java of JAVA_HOME, or else the first one on PATH; it needs version 17.
java:
	@has_java() { \
	  local found="$${JAVA_HOME:+$$JAVA_HOME/bin/}java" version; \
	  version="$$("$$found" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)" || true; \
	  [ "$${version:-0}" -ge 17 ]; }; \
	has_java && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ -z "$${JAVA_HOME:-}" ]; then \
	  echo "Installing Java, which Spark needs"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jre-headless; } >/dev/null || true; \
	fi; \
	has_java || { echo "Spark needs Java 17 or newer: install it (Debian: apt-get install default-jre-headless) or point JAVA_HOME at one." >&2; exit 1; }

# Tests of the stores and of HyperLogLog need a Redis server, tests of the page a browser, those of databases PostgreSQL.
# Without them those tests are skipped.
servers: | java # apt-get runs once at a time
	@missing=; \
	command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	command -v chromium >/dev/null && command -v chromedriver >/dev/null || missing="$$missing chromium chromium-driver"; \
	command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing$$missing, for the tests"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  for attempt in 1 2 3; do \
	    if { apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; } >/dev/null; then break; fi; \
	    sleep $$((5 * attempt)); \
	  done; \
	else \
	  echo "Tests that need$$missing are skipped: install it to run them." >&2; \
	fi

# A copy of the sources below build/MODE with kernels of its own, so that the normal build stays as it is.
# Compiled files and what they were made of are kept from one run to the next. $(1): mode, $(2): what setup.py is told.
define checked_build
	@mkdir -p build/$(1)
	@find build/$(1) -path build/$(1)/build -prune -o -type f ! -name '*.so' -exec rm {} +
	@tar -cf - --exclude='*.so' --exclude=__pycache__ setup.py pyproject.toml README.md LICENSE docs examples fastwin tests | tar -xf - -C build/$(1)
	@echo "Compiling the kernels ($(1))"
	@cd build/$(1) && $(2) CC='$(CC)' ../../$(PY) setup.py --quiet build_ext --inplace
endef
