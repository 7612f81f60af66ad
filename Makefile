# The two commands of the README (`make demo`, `make test`), and what keeps the house in order.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test check docs lock clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.demo ## run everything on this machine, with a first job (PORT=8000)
	@exec $(BIN)/python manage.py demo --port $(PORT)

test: $(VENV)/.dev ## all tests, the browser's included
	@.ci/system-packages
	@$(BIN)/python -m pytest -n 2 --dist loadscope

check: $(VENV)/.dev ## lint, format, types, templates
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/djlint --quiet --lint templates

bench-%: $(VENV)/.dev ## one benchmark of tests/bench, for example bench-store (ARGS="--help")
	@$(BIN)/python -m tests.bench.$* $(ARGS)

docs: $(VENV)/.dev ## write the reference pages again
	@$(BIN)/python docs/generate.py && $(BIN)/python docs/glimpses.py

lock: $(VENV)/.dev ## resolve requirements/*.in again
	@cd requirements && ./lock

clean: ## remove the virtual environment and the demo's data
	rm -rf $(VENV) .lockstep staticfiles

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || \
	  { echo "Lockstep needs Python 3.11, and '$(PYTHON)' is not it: install it, or name it with PYTHON=/path/to/python3.11." >&2; exit 2; }
	@echo "Creating the virtual environment ..."
	@"$(PYTHON)" -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Python's venv module is missing: install it (on Debian: apt-get install python3.11-venv)." >&2; exit 2; }

$(VENV)/.demo: requirements/demo.txt | $(BIN)/python
	@echo "Installing what the demo needs, TensorFlow included (about 300 MB, once) ..."
	@$(PIP) install --require-hashes -r requirements/demo.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(BIN)/python
	@echo "Installing what the tests need, TensorFlow included (about 350 MB, once) ..."
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $(VENV)/.demo $@
