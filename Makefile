# Everything here needs only Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Small matrices with several busy BLAS threads crawl: one thread a process, one process a core.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST_ARGS ?=

.PHONY: help venv test slow lint format report clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/.core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("cavity needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	touch $@

venv: $(VENV)/.dev  ## create the virtual environment with everything for development

test: $(VENV)/.dev  ## run the tests (without those marked slow)
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto -q $(PYTEST_ARGS)

slow: $(VENV)/.dev  ## run the slow tests as well
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto -q -m 'slow or not slow' $(PYTEST_ARGS)

lint: $(VENV)/.dev  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## let ruff rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

report: $(VENV)/.core  ## fit the Pima data end to end and say how good the model is
	$(BIN)/python -m cavity report pima

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
