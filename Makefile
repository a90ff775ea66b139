# Everything here sets itself up from nothing: Python 3.11, make and pip are enough.

PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready

.PHONY: help setup train test test-slow test-browser check format golden leaderboard bench clean

help:
	@echo "make train        train on the demo shop and print the table on people held out (about 8 minutes, two cores)"
	@echo "make test         the quick tests"
	@echo "make check        format, lint, types, direction of imports"
	@echo "make test-slow    the slow tests (fuzzing, real command line at length)"
	@echo "make leaderboard  rank the scripted agents on the demo shop"
	@echo "make bench        measure speed"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[train,report,reference,sb3,test]"
	touch $(READY)

# SEED, STORE, OUT and ARGS may be given: make train STORE=stores/mine OUT=runs/mine
SEED ?= 0
STORE ?= demo
OUT ?= runs/$(notdir $(STORE))-seed$(SEED)-$(shell date +%Y%m%d-%H%M%S)
train: $(READY)
	$(RUN) -m agents.llm_grpo.train --preset tiny_cpu --store $(STORE) --seed $(SEED) --out $(OUT) $(ARGS)

test: $(READY)
	$(RUN) -m pytest $(ARGS)

test-slow: $(READY)
	$(RUN) -m pytest -m slow $(ARGS)

test-browser: $(READY)
	@command -v chromium >/dev/null || echo "no chromium: the tests will skip; install it, on Debian with apt-get install chromium"
	$(RUN) -m pytest -m browser $(ARGS)

check: $(READY)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

format: $(READY)
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

leaderboard: $(READY)
	$(RUN) -m benchmarks.leaderboard --agents random,majority,repeat_last,copy_match,oracle --store $(STORE) --split test --out runs/leaderboard $(ARGS)

bench: $(READY)
	$(RUN) -m benchmarks.speed $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
