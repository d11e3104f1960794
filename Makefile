# One door to everything: bare `make` lists the targets. Needs make and Python 3.11 or newer, nothing else.
#
#   PYTHON=...   the Python to build .venv with; else the newest of the supported ones that is found
#   ARGS=...     passed on to pytest, the demo, the benchmarks or the fuzzer: make test ARGS="-k absence"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo check test suite faults bench bench-start bench-spark bench-peers bench-subscriptions bench-logistics bench-planning bench-devices bench-mobile experiments flink soak fuzz docs wheel format golden constraints clean lint types contracts

PYTHON ?=
OLDEST ?= python3.11
ARGS ?=
DEMO := examples/traffic/run.py

VENV := .venv
PY := $(VENV)/bin/python
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
ENGINE := $(VENV)/.whimbrel-engine-installed
RUNTIME := $(VENV)/.whimbrel-installed
DEV := $(VENV)/.whimbrel-dev-installed

help:  ## list the targets
	@echo "Whimbrel. Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' Makefile

# The first result comes before Spark is installed.
demo: $(ENGINE)  ## detect over a sample of traffic and show what was found
	@$(PY) $(DEMO) --engine embedded $(ARGS)
ifeq (,$(findstring embedded,$(ARGS)))
	@$(MAKE) --no-print-directory $(RUNTIME)
	@$(PY) $(DEMO) --engine spark $(ARGS)
endif

check: $(DEV) lint types contracts  ## the quick checks and tests, for while you work (under two minutes)
	@echo "Running the quick tests"
	@$(PY) tools/test.py -q -m "not slow" $(ARGS)

# Repeatable: the order of the tests, the generated examples and the order of sets are the same every time.
test: $(DEV) lint types contracts  ## everything: style, types, contracts, all tests, documentation
	@echo "Running all tests (they build the documentation too)"
	@PYTHONHASHSEED=0 HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(PY) tools/test.py --randomly-seed=1 $(ARGS)

suite: $(DEV)  ## every test of the shared suite on every backend, Spark included (an hour and a half)
	@for each in embedded session spark-batch spark-stream; do \
		echo "The shared suite on $$each"; \
		$(PY) -m pytest -q tests/shared --backend=$$each --timeout=600 $(ARGS) || exit 1; \
	done

faults: $(DEV)  ## kill a streaming driver 20 times, and workers of a cluster (a quarter of an hour)
	@WHIMBREL_KILLS=$${WHIMBREL_KILLS:-20} $(PY) -m pytest -v tests/spark/faults $(ARGS)

bench: $(DEV)  ## measure speed, as ratios: the engine, then subscriptions (a quarter of an hour)
	@$(PY) bench/run.py $(ARGS)
	@$(PY) bench/subscriptions/run.py $(filter --write,$(ARGS))
	@$(PY) bench/logistics.py $(filter --write,$(ARGS))

bench-start: $(DEV)  ## measure how long the first result takes, with and without machine code on disk (three minutes)
	@$(PY) bench/start.py $(ARGS)

bench-spark: $(DEV)  ## measure speed on Spark against Spark's own ceiling (half an hour)
	@$(PY) bench/spark/run.py $(ARGS)

bench-peers: $(DEV)  ## measure speed against Flink CEP, and compare the matches (an hour)
	@$(PY) bench/peers/run.py $(ARGS)

bench-subscriptions: $(DEV)  ## measure subscriptions against NumPy and Shapely's STRtree (five minutes)
	@$(PY) bench/subscriptions/run.py $(ARGS)

bench-logistics: $(DEV)  ## measure 15,000 composite subscriptions (five minutes)
	@$(PY) bench/logistics.py $(ARGS)

experiments: $(DEV)  ## make every figure of the published experiments again, into out/experiments (an hour and more)
	@$(PY) -m experiments $(ARGS)

bench-planning: $(DEV)  ## measure how far plans are from the optimum, and how long planning takes (six minutes)
	@PYTHONPATH=. $(PY) bench/planning/run.py $(ARGS)
	@PYTHONPATH=. $(PY) bench/planning/estimates.py

bench-devices: $(DEV)  ## measure what safe regions save and cost (a quarter of an hour)
	@$(PY) bench/safe_regions.py $(ARGS)

bench-mobile: $(DEV)  ## measure mobile queries in one process and on Spark (half an hour)
	@$(PY) bench/mobile/embedded.py $(ARGS)
	@$(PY) bench/mobile/spark.py $(ARGS)

flink: $(DEV)  ## compare sequences of steps with Flink CEP itself, over 5,000 random patterns (a quarter of an hour)
	@WHIMBREL_FLINK_PATTERNS=$${WHIMBREL_FLINK_PATTERNS:-5000} $(PY) -m pytest -q tests/flink $(ARGS)

soak: $(DEV)  ## run the generated tests for much longer
	@HYPOTHESIS_PROFILE=soak $(PY) -m pytest -m property --timeout=7200 $(ARGS)

fuzz: $(DEV)  ## throw random text and random bytes at what reads them
	@$(PY) tests/fuzz.py $(ARGS)

docs: $(DEV)  ## build the documentation into docs/_build/html
	@echo "Building the documentation"
	@$(PY) -m sphinx -W -n --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

wheel: $(DEV)  ## build the wheel and the source archive into dist
	@rm -rf dist
	@$(PY) -m hatchling build -d dist

format: $(DEV)  ## put the code into its standard form, and mend what can be mended
	@$(PY) -m ruff check --quiet --fix-only .
	@$(PY) -m ruff format .

golden: $(DEV)  ## rewrite the golden files with what the code says now; review the diff
	@$(PY) -m pytest -q -m golden --update-golden $(ARGS)

# The oldest supported Python chooses, since the newest versions may have left it behind.
constraints:  ## raise every pinned version in constraints.txt to the newest that fits (needs Python 3.11)
	@$(OLDEST) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "Needs Python 3.11: make constraints OLDEST=..." >&2; exit 1; }
	@echo "Installing the newest versions into build/newest (a minute or two)"
	@rm -rf build/newest
	@$(OLDEST) -m venv build/newest
	@build/newest/bin/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	@build/newest/bin/python tools/constraints.py

clean:  ## remove caches and everything built; .venv stays
	@rm -rf build dist out docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests tools bench examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

# The steps that check and test share. -----------------------------------------------------------------------

lint: $(DEV)
	@echo "Checking format, style and spelling"
	@$(PY) -m ruff format --check --quiet --output-format concise . || { echo "Not in standard form; make format mends it." >&2; exit 1; }
	@$(PY) -m ruff check --quiet --output-format concise .
	@$(PY) -m codespell_lib

# Kernels are compiled meanwhile: each of the processes that run tests would compile them for itself.
types: $(DEV)
	@echo "Checking types"
	@$(PY) -m tests.kernels & $(PY) -m mypy --no-error-summary; status=$$?; wait; exit $$status

contracts: $(DEV)
	@echo "Checking that imports point down"
	@$(PY) -c "from importlinter.cli import lint_imports_command as run; run(['--no-logo'])" > $(VENV)/contracts.log \
		|| { cat $(VENV)/contracts.log; exit 1; }

# Installing. A stamp file in .venv says what is there, so that a second run starts at once. -----------------

$(ENGINE): pyproject.toml constraints.txt | $(PY)
	@echo "Installing Whimbrel into .venv (half a minute the first time)"
	@$(INSTALL) --editable .
	@touch $@

$(RUNTIME): pyproject.toml constraints.txt | $(PY)
	@echo "Installing Whimbrel and Spark into .venv (a minute or two the first time)"
	@$(INSTALL) --editable '.[spark]'
	@touch $(ENGINE) $@

$(DEV): pyproject.toml constraints.txt | $(PY)
	@echo "Installing Whimbrel and its test tools into .venv (a minute or two the first time)"
	@$(INSTALL) --editable '.[dev]'
	@touch $(ENGINE) $(RUNTIME) $@

# A Python that is too old, or that lacks venv, is passed over.
FITS := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

$(PY):
	@for each in $(if $(PYTHON),"$(PYTHON)",python3.13 python3.12 python3.11 python3 python); do \
		if "$$each" -c '$(FITS)' > /dev/null 2>&1; then \
			echo "Making .venv with $$("$$each" --version)"; \
			rm -f $(ENGINE) $(RUNTIME) $(DEV); \
			exec "$$each" -m venv $(VENV); \
		fi; \
	done; \
	echo "Whimbrel needs Python 3.11 or newer with its venv module." >&2; \
	echo "Found: $(or $(PYTHON),python3) is $$("$(or $(PYTHON),python3)" --version 2>/dev/null || echo missing)." >&2; \
	echo "Install one (on Debian: python3 and python3-venv), or name it: make PYTHON=python3.12" >&2; \
	exit 1
