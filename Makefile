# Everything here needs only Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Small matrices with several busy BLAS threads crawl: one thread a process, one process a core.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST_ARGS ?=
TRUST_ARGS ?=
SUSPECTS_ARGS ?=
LARGE_ARGS ?=
SUGGEST_ARGS ?=
GOALS_ARGS ?=
MUTANTS_ARGS ?=
FARM_ARGS ?= --jobs 2 --keep

BENCH_VENV ?= .venv-bench
# All contestants get the same number of threads.
BENCH_THREADS ?= 2
ALL_THREADS := OMP_NUM_THREADS=$(BENCH_THREADS) OPENBLAS_NUM_THREADS=$(BENCH_THREADS) MKL_NUM_THREADS=$(BENCH_THREADS)

.PHONY: intervals help venv test slow farm lint format report pictures docs bench curves trust reliability coverage goals mutants suspects clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/.core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("cavity needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.report: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[report]'
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	touch $@

venv: $(VENV)/.dev  ## create the virtual environment with everything for development

test: $(VENV)/.dev  ## run the tests (without those marked slow)
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal -q $(PYTEST_ARGS)

slow: $(VENV)/.dev  ## run the slow tests as well
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal -q -m 'slow or not slow' $(PYTEST_ARGS)

farm: $(VENV)/.dev  ## solve random hostile problems and check every answer (HOURS=3: longer)
	$(ONE_THREAD) $(BIN)/python -m farm $(if $(HOURS),--hours $(HOURS)) $(FARM_ARGS)

reliability: $(VENV)/.dev  ## all figures of docs/reliability.md (QUICK=1: a minute)
	$(ONE_THREAD) $(BIN)/python -m farm.reliability $(if $(QUICK),--quick)

coverage: $(VENV)/.dev  ## which lines and branches the tests run; fails below 97 % and 92 %
	$(ONE_THREAD) $(BIN)/python -m farm.coverage $(PYTEST_ARGS)

lint: $(VENV)/.dev  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## let ruff rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

report: $(VENV)/.report  ## fit the Pima data end to end and write report.html
	$(BIN)/python -m cavity report pima

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs,report]'
	touch $@

pictures: $(VENV)/.dev  ## draw the pictures of the documentation again
	$(ONE_THREAD) $(BIN)/python docs/pictures.py

docs: $(VENV)/.docs  ## build the documentation and its gallery: docs/_build/html/index.html
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

$(BENCH_VENV)/.peers: pyproject.toml benchmarks/install.py
	test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BENCH_VENV)/bin/python benchmarks/install.py
	touch $@

ifdef LARGE
bench: $(BENCH_VENV)/.peers
	$(ALL_THREADS) $(BENCH_VENV)/bin/python -m benchmarks.large $(if $(QUICK),--quick) $(LARGE_ARGS)
else
bench: $(BENCH_VENV)/.peers  ## measure this library beside its peers (QUICK=1: minutes; LARGE=1: large tables)
	$(ALL_THREADS) $(BENCH_VENV)/bin/python -m benchmarks $(if $(QUICK),--quick)
	$(ALL_THREADS) $(BENCH_VENV)/bin/python -m benchmarks.stream $(if $(QUICK),--quick)
endif

curves: $(VENV)/.dev  ## check learning curves by theory against refits (QUICK=1: minutes)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.curves $(if $(QUICK),--quick)

$(VENV)/.trust: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[trust]'
	touch $@

trust: $(VENV)/.trust  ## check the automatic model against peers, fresh rows and refits (QUICK=1: a minute)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.trust $(if $(QUICK),--quick) $(TRUST_ARGS)

$(VENV)/.suspects: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check cleanlab
	touch $@

suspects: $(VENV)/.suspects  ## find labels turned wrong, beside cleanlab (QUICK=1: a minute)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.suspects $(if $(QUICK),--quick) $(SUSPECTS_ARGS)

intervals: $(VENV)/.dev  ## check intervals and sets on fresh rows, beside MAPIE if it is installed
	$(ONE_THREAD) $(BIN)/python -m benchmarks.intervals $(if $(QUICK),--quick)

goals: $(VENV)/.dev  ## check whether goals are met as often as plans say (QUICK=1: a minute)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.goals $(if $(QUICK),--quick) $(GOALS_ARGS)

suggestions: $(VENV)/.dev  ## race suggested rows against others (QUICK=1: a minute)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.suggestions $(if $(QUICK),--quick) $(SUGGEST_ARGS)

mutants: $(VENV)/.dev  ## put small faults into the core and see whether the tests notice
	$(ONE_THREAD) $(BIN)/python -m benchmarks.mutants $(MUTANTS_ARGS)

clean:  ## remove the virtual environments and all caches
	rm -rf $(VENV) $(BENCH_VENV) .pytest_cache .mypy_cache .ruff_cache build dist
	rm -rf docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst examples/output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
