# Two commands matter: `make demo` and `make test`. Each sets up .venv by itself, once.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
LAB ?= 1
PYTEST_ARGS ?=
VENV := .venv
PY := $(VENV)/bin/python

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUNBUFFERED := 1

# The core holds what a lost conversation would be lost by; its branches are covered, enforced.
CORE := errors ids blocks frozen wire entries codec stored events tree pairing views compaction \
	annotations answers schemas paths growing media inputs tools toolspec hooks background budget \
	lifecycle origin questions textstream loaded settings run replay/__init__ replay/record \
	replay/events replay/verbs modelcall references reruns forking toolstep loop compacting planning \
	starting handle asking annotating session opening stores/base stores/beside stores/memory \
	stores/memory_session models/base models/sound
LAB_OPTIONS := --ServerApp.ip=127.0.0.1 --ServerApp.allow_root=True --ServerApp.log_level=WARN \
	--LabApp.default_url=/lab/tree/index.ipynb
# JupyterLab asks two servers for news at each start, and its reader whether it may.
NEWS := @jupyterlab/apputils-extension:announcements
empty :=
comma := ,
CORE_FILES := $(subst $(empty) $(empty),$(comma),$(strip $(patsubst %,nbdurable/%.py,$(CORE))))
CORE_PERCENT := 95

# One dot for each package that pip takes up; what pip says is printed when it fails.
define pip_install
	@echo "$(2) (once; one to two minutes)"
	@set -o pipefail; $(PY) -m pip install --no-input -e "$(1)" 2>&1 | tee $(VENV)/pip.log | \
		while read -r line; do case "$$line" in Collecting*|Building*|Installing*) printf .;; esac; done \
		|| { echo; grep -v "is ignored:" $(VENV)/pip.log | tail -n 40 >&2; exit 1; }
	@rm -f $(VENV)/pip.log
	@echo " done"
	@touch $@
endef

.PHONY: help demo test test-all bench bench-ui docs figures lint screenshots recordings clean run-tests system

help:
	@echo "make demo          converse, kill, resume, branch on a local model; then JupyterLab"
	@echo "make demo LAB=0    the same, without JupyterLab"
	@echo "make test          everything that must pass: lint, types, tests, coverage, behaviours"
	@echo "make test-all      make test, the long runs, and the docs"
	@echo "make lint          ruff and mypy only"
	@echo "make bench         measured speed beside its targets"
	@echo "make bench-ui      the same for the session tree, in a browser"
	@echo "make figures       the last make bench as a part of the docs"
	@echo "make docs          the docs as HTML, in build/docs"
	@echo "make screenshots   pictures of the widgets, in build/screenshots"
	@echo "make recordings    the answers that the notebooks replay, asked anew of the local model"
	@echo "make clean         remove .venv and what the tools left behind"
	@echo "PYTHON=python3.12 chooses the interpreter; it must be 3.11 or newer"

$(VENV)/created.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nbdurable needs \
	Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1); try make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv $(VENV) || { echo "no virtual environment could be made; \
	on Debian install python3-venv, then run make again" >&2; exit 1; }
	@touch $@

$(VENV)/demo.stamp: pyproject.toml $(VENV)/created.stamp
	$(call pip_install,.[demo],Installing nbdurable and JupyterLab into $(VENV))
	@$(VENV)/bin/jupyter labextension disable $(NEWS) >/dev/null 2>&1

$(VENV)/test.stamp: pyproject.toml $(VENV)/created.stamp
	$(call pip_install,.[demo$(comma)test],Installing nbdurable and its test tools into $(VENV))

$(VENV)/bench.stamp: pyproject.toml $(VENV)/test.stamp
	$(call pip_install,.[bench],Installing what the benchmarks compare with into $(VENV))

$(VENV)/docs.stamp: pyproject.toml $(VENV)/test.stamp
	$(call pip_install,.[docs],Installing what makes the docs into $(VENV))

$(VENV)/marimo.stamp: $(VENV)/test.stamp
	@echo "Installing marimo, in which the widgets are tested too (once)"
	@$(PY) -m pip install --no-input -q marimo
	@touch $@

# What the tests of the page's modules need beside Node.js.
tests/js/node_modules/installed.stamp: tests/js/package.json
	@echo "Installing what the tests of the page need (once)"
	@cd tests/js && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

# The fetch checks what is there first, so that it may run every time.
define fetch_weights
	@$(VENV)/bin/nbdurable local fetch
endef

demo: $(VENV)/demo.stamp
	$(fetch_weights)
	@$(VENV)/bin/nbdurable demo
	@if [ "$(LAB)" != 0 ]; then echo "Starting JupyterLab on notebooks/; Ctrl-C ends it"; \
		exec $(VENV)/bin/jupyter lab $(LAB_OPTIONS) notebooks; fi

system: $(VENV)/created.stamp
	@$(PY) tests/setup_system.py

lint: $(VENV)/test.stamp
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

test: $(VENV)/test.stamp system tests/js/node_modules/installed.stamp lint
	$(fetch_weights)
	@$(MAKE) run-tests MARKS="not slow"

test-all: $(VENV)/test.stamp $(VENV)/marimo.stamp system tests/js/node_modules/installed.stamp lint \
		docs
	$(fetch_weights)
	@$(MAKE) run-tests MARKS="slow or not slow"

# Two workers, one file each at a time, long ones first: a file's dear fixtures are made once. The
# core is traced by the tests that tell of it; tracing all would take half as long again. All checks
# are run whatever the ones before say, so that one look shows everything.
run-tests:
	@failed=0; \
	for part in "not untraced" untraced; do \
		if [ "$$part" = untraced ]; then traced=; else traced="--cov --cov-report="; fi; \
		$(PY) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder $$traced \
			-m "($(MARKS)) and $$part" $(PYTEST_ARGS) || failed=1; \
	done; \
	$(PY) -m coverage report --include="$(CORE_FILES)" --fail-under=$(CORE_PERCENT) || failed=1; \
	$(PY) tests/behaviours.py --brief || failed=1; \
	exit $$failed

# All are run whatever the ones before say; what they print is kept for `make figures`.
bench: $(VENV)/bench.stamp
	@mkdir -p build; set -o pipefail; { failed=0; \
	for name in core store sharing frames formats replay explore peers kill; do echo; echo "bench_$$name.py"; \
		$(PY) tests/benchmarks/bench_$$name.py || failed=1; done; \
	exit $$failed; } | tee build/bench.txt

figures: $(VENV)/test.stamp
	@$(PY) tests/benchmarks/figures.py build/bench.txt

# A warning is an error: a link that leads nowhere, a name that is gone, a docstring out of form.
docs: $(VENV)/docs.stamp
	@$(PY) -m sphinx --fail-on-warning --keep-going -q -b html notebooks/docs build/docs
	@echo "the docs are in build/docs/index.html"

bench-ui: $(VENV)/test.stamp
	@$(PY) tests/setup_system.py browser
	@$(PY) tests/benchmarks/bench_ui.py

screenshots: $(VENV)/test.stamp
	@$(PY) tests/setup_system.py browser
	@$(PY) tests/screenshots.py build/screenshots

recordings: $(VENV)/test.stamp
	$(fetch_weights)
	@$(PY) tests/record_notebooks.py
	@$(PY) tests/record_answers.py

clean:
	@rm -rf $(VENV) build dist tests/js/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
