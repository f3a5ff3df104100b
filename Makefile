# Everything a fresh machine needs: Python 3.11 and make. `make help` lists the targets.

VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$candidate"; break; }; done)
RUNTIME := $(VENV)/.runtime-installed
TOOLS := $(VENV)/.tools-installed
PIP := $(PY) -m pip install --disable-pip-version-check --quiet --require-hashes
COMPILE := $(VENV)/bin/uv pip compile --quiet --generate-hashes --python-version 3.11 --no-emit-index-url --no-header

TRACE ?=
LIMIT ?=
EXIT ?=
MINUTES ?= 10
KILLS ?= 200
WORKERS ?= 2
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo up test check fix bench bench-otlp bench-commercial soak requirements check-all \
	check-lint check-format check-types check-walls check-migrations check-contracts check-diagrams check-coverage check-rules

help: ## Show what there is to run
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | while IFS='|' read -r name text; do \
		printf '  make %-14s %s\n' "$$name" "$$text"; done

demo: $(RUNTIME) ## Replay a trace, prove the result, stay up (TRACE=file LIMIT=n EXIT=1)
	@exec $(PY) -m config.supervisor demo $(if $(TRACE),--trace '$(TRACE)') $(if $(LIMIT),--limit '$(LIMIT)') $(if $(filter 1,$(EXIT)),--exit)

up: $(RUNTIME) ## Run everything in the foreground until Ctrl-C (WEB_PORT=8000)
	@exec $(PY) -m config.supervisor up

test: $(TOOLS) ## Run the tests (ARGS='tests/outbox -k claim' WORKERS=2)
	@exec $(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(TOOLS) ## Lint, format, types, walls, migrations, contracts, coverage, alert rules; changes nothing
	@$(MAKE) --no-print-directory --keep-going check-all

check-all: check-lint check-format check-types check-walls check-migrations check-contracts check-diagrams check-coverage check-rules

check-lint: $(TOOLS)
	$(PY) -m ruff check .

check-format: $(TOOLS)
	$(PY) -m ruff format --check .

check-types: $(TOOLS)
	$(PY) -m mypy .

check-walls: $(TOOLS)
	$(PY) $(VENV)/bin/lint-imports

check-migrations: $(TOOLS)
	$(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

check-contracts: $(TOOLS)
	$(PY) manage.py contracts --check

check-diagrams: $(TOOLS)
	$(PY) manage.py diagrams --check

check-coverage: $(TOOLS)
	$(PY) -m tests.coverage_table --check

check-rules: # promtool proves them; REQUIRE_PROMTOOL=1 makes its absence an error
	@if command -v promtool >/dev/null; then \
		promtool check rules deploy/prometheus/*.rules.yml && promtool test rules deploy/prometheus/tests/*.yml; \
	elif [ "$(REQUIRE_PROMTOOL)" = 1 ]; then \
		echo "promtool is missing; Debian has it in the package prometheus." >&2; exit 1; \
	else echo "promtool is not installed: the alert rules were not tested."; fi

fix: $(TOOLS) ## Format, apply safe lint fixes, write what is generated
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(PY) manage.py contracts
	$(PY) manage.py diagrams
	$(PY) -m tests.coverage_table

bench: $(TOOLS) ## Drain preloaded backlogs beside peers, print a table, write JSON
	@exec $(PY) -m tests.bench $(ARGS)

bench-otlp: $(TOOLS) ## Send telemetry to a receiver over HTTP, beside the same work without, print a table, write JSON
	@exec $(PY) -m tests.bench telemetry $(ARGS)

bench-commercial: $(TOOLS) ## Quota beside bare statements, at 1, 8 and 32 threads
	@exec $(PY) -m tests.bench commercial $(ARGS)

soak: $(TOOLS) ## Kill processes at random under load, then verify (MINUTES=10 KILLS=200)
	@SOAK_MINUTES=$(MINUTES) FILES_KILLS=$(KILLS) exec $(PY) -m pytest -m soak $(ARGS)

requirements: $(TOOLS) ## Pin requirements*.in again, with hashes
	$(COMPILE) requirements.in --output-file requirements.txt
	$(COMPILE) requirements-infisical.in --output-file requirements-infisical.txt
	$(COMPILE) requirements-dev.in --output-file requirements-dev.txt
	$(COMPILE) requirements-bench.in --output-file requirements-bench.txt

$(PY):
	@if [ -z "$(PYTHON)" ]; then \
		echo "Python 3.11 or newer was not found. Install it (Debian: apt-get install python3.11 python3.11-venv)," >&2; \
		echo "or name it: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; fi
	@echo "Making a virtual environment with $(PYTHON) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "The virtual environment could not be made. Debian needs the package python3.11-venv." >&2; exit 1; }

$(RUNTIME): requirements.txt | $(PY)
	@echo "Installing requirements.txt ..."
	@$(PIP) -r requirements.txt
	@touch $@

$(TOOLS): requirements-dev.txt $(RUNTIME)
	@echo "Installing requirements-dev.txt ..."
	@$(PIP) -r requirements-dev.txt
	@touch $@
