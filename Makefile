# Everything runs in its own virtual environment, made on first use from Python >= 3.11 alone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JOBS   ?= auto

# The shared data folder is used where it exists; see docs/reproduction.md.
ifneq ($(wildcard ../shared/data),)
export BAYESCFX_DATA ?= $(abspath ../shared/data)
endif
# One thread per process: results and timings do not depend on the machine's cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

# Compiled files are kept, or every process that a test starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# Each worker runs a part of the tests in their order, so that a module's models are fitted once.
PARALLEL := -n $(JOBS) --dist worksteal

# The linters of the page's JavaScript, at the versions of package.json.
SCRIPT_TOOLS := { npm ls --silent >/dev/null 2>&1 || npm install --silent >/dev/null 2>&1; }

.PHONY: demo test test-all lint lint-scripts format quality bench reproduce reproduce-oldest docs clean

demo: $(READY)
	mkdir -p demo-output
	$(BIN)/bayescfx demo --folder demo-output

test: $(READY)
	$(BIN)/python -m pytest -q -rs $(PARALLEL)

test-all: $(READY)
	$(BIN)/python -m pip install --quiet --group heavy --group docs
	$(BIN)/python -m pytest -q -rs $(PARALLEL) -m "slow or not slow"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) lint-scripts

# The page's JavaScript: Biome and TypeScript, where npm can install them.
lint-scripts:
	@if ! command -v npm >/dev/null; then echo "JavaScript is not linted: npm is not installed"; \
	elif ! $(SCRIPT_TOOLS); then echo "JavaScript is not linted: npm cannot install the linters"; \
	else npm run --silent lint; fi

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@if command -v npm >/dev/null && $(SCRIPT_TOOLS); then npm run --silent format; fi

reproduce: $(READY)
	$(BIN)/python -m experiments

# The same with the oldest supported versions, compared with the results that are there.
OLDEST := build/oldest
reproduce-oldest: $(READY)
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/bin/python -m pip install --quiet --editable . --group oldest
	$(OLDEST)/bin/python -m experiments --out build/reproduction-oldest
	$(BIN)/python -m experiments compare experiments/results build/reproduction-oldest/results

# At most five minutes; exit code 1 if answers are worse than those of the stored baseline.
quality: $(READY)
	$(BIN)/python -m benchmarks.quality

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees docs site

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("bayescfx needs Python 3.11 or newer, got " + sys.version) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable '.[plots,gradient,progress,parallel,models,web]' --group lint --group test
	touch $(READY)

clean:
	rm -rf $(VENV) node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site docs/gallery docs/reference/generated docs/sg_execution_times.rst
