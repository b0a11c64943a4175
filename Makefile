# `make` or `make help` lists what can be made.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.gnnc-installed
PYTEST_ARGS ?= -n auto
SEEDS ?= 0-999
FOLDER ?= .hunt
JOBS ?= 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv demo bench test test-all test-sanitize check filecheck ranks pytest hunt ops format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# torch goes first and alone: where an index offers several builds of it, this settles which one
# before the packages that merely depend on torch are looked at.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "gnnc needs Python 3.11 or newer, and $(PYTHON) is %d.%d: run make PYTHON=python3.11 (or newer)" % v[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	@touch $@

venv: $(STAMP) ## build the virtual environment (the other targets do it when needed)

demo: $(STAMP) ## train a model eagerly and compiled, and compare accuracy, time and memory
	$(BIN)/python examples/demo.py

bench: $(STAMP) ## time training epochs against PyG and DGL
	$(BIN)/gnnc bench

test: check filecheck ranks pytest ## style, types, IR tests and quick Python tests (about 20 minutes)

test-all: check filecheck ## the same with the tests that take minutes each, and test-sanitize
	$(BIN)/python -m pytest -m mpi
	$(BIN)/python -m pytest -m "not mpi" $(PYTEST_ARGS)

test-sanitize: $(STAMP) ## kernels and models under address, undefined-behaviour, thread sanitizers
	$(BIN)/python -m pytest -m sanitize $(PYTEST_ARGS)

check: $(STAMP) ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

filecheck: $(STAMP) ## lit and FileCheck tests of dialects and passes
	$(BIN)/lit --quiet filecheck

ranks: $(STAMP) ## quick tests of ranks that are processes, beside no other work
	$(BIN)/python -m pytest -m "mpi and not long"

pytest: $(STAMP) ## all other quick Python tests; PYTEST_ARGS="-k name" chooses
	$(BIN)/python -m pytest -m "not mpi and not long" $(PYTEST_ARGS)

hunt: $(STAMP) ## random programs against eager, SEEDS=0-999; a later run continues (FOLDER, JOBS)
	nice $(BIN)/python -m tests.hunt $(SEEDS) --folder $(FOLDER) --jobs $(JOBS)

ops: $(STAMP) ## try every op of torch and write docs/ops.md
	$(BIN)/python -m gnnc.tests.oracle.table

format: $(STAMP) ## let ruff rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the virtual environment and every build product
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find filecheck -name Output -type d -prune -exec rm -rf {} +
