# One command each; all of them set up what they need first (a virtual environment in .venv with
# the exact versions of constraints.txt). `make VENV=path ...` uses another environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST_WORKERS ?= 4

# The tests start Midturn some hundred times: compiling it each time takes a sixth of their time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo run test test-slow check format bench screens lock clean

help:
	@echo "make demo       set up and open Midturn with the built-in demo model (no key, no network)"
	@echo "make run        set up and open Midturn with the configured model"
	@echo "make test       set up and run the fast tests (about six minutes on two cores)"
	@echo "make test-slow  set up and run the slow tests"
	@echo "make check      ruff, ruff format, mypy, pyright, import-linter"
	@echo "make format     let ruff rewrite what it can"
	@echo "make bench      the benchmarks, as ratios within one run"
	@echo "make screens    make the pictures in docs/screens anew, from the real program"
	@echo "make lock       renew constraints.txt and constraints-dev.txt (needs uv)"

$(VENV)/.runtime: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Midturn needs Python 3.11 or newer, but $(PYTHON) is %d.%d; name another one with: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module; on Debian and Ubuntu install it with: apt install python3-venv"; exit 1; }
	@echo "setting up $(VENV) (once, about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --require-hashes -r constraints.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime constraints-dev.txt
	@echo "adding the development tools ..."
	@$(PIP_INSTALL) --require-hashes -r constraints.txt -r constraints-dev.txt
	@touch $@

demo: $(VENV)/.runtime
	@$(BIN)/midturn demo

run: $(VENV)/.runtime
	@$(BIN)/midturn

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow" -n $(PYTEST_WORKERS) $(ARGS)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	PYTHONPATH=cli:core:tools $(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	@for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

screens: $(VENV)/.dev
	$(BIN)/python docs/make_screens.py

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --group build -o constraints.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url -c constraints.txt --group dev -o constraints-dev.txt

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
