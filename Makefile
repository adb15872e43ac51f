# pathsum: type `make help`.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
JOBLIB  = $(if $(filter-out 1,$(JOBS)),hydra/launcher=joblib hydra.launcher.n_jobs=$(JOBS))
export PATH := $(abspath $(BIN)):$(PATH)
export PYTHONDONTWRITEBYTECODE = 1
export PYTHONHASHSEED = 0

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready ## make .venv from requirements.lock

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else "pathsum needs Python 3.11 to 3.13, got %d.%d; try make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.lock)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pipelines.plots_template
	touch $@

params: setup ## compose conf/ into params.yaml
	python -m pipelines.compose

repro: setup ## regenerate every result that is out of date, and the report; JOBS=N cells at a time
	python -m pipelines.repro $(JOBS)

smoke: setup ## the whole graph on the smoke profile, in a scratch copy
	bash pipelines/smoke.sh

test: setup ## lint, types, tests, and the smoke graph
	ruff check .
	ruff format --check .
	@said=$$(mktemp); mypy >"$$said" 2>&1 & types=$$!; \
		pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder; tests=$$?; \
		wait $$types; types=$$?; echo "mypy:"; cat "$$said"; rm -f "$$said"; exit $$((tests || types))

lint: setup ## format and lint in place
	ruff format .
	ruff check --fix .

sweep: setup ## the grid, JOBS=N cells at a time (without, what cores and memory allow); or an ad-hoc one: make sweep JOBS=2 ARGS='model.n_layers=1,2'
	$(if $(ARGS),python -m pipelines.train --multirun $(JOBLIB) $(ARGS),python -m pipelines.repro $(JOBS))

corpora: setup ## the same models on several corpora, a row of verdicts each: make corpora TEXT='essays=essays/**/*.txt'
	python -m pipelines.corpora --text '$(TEXT)' --jobs '$(JOBS)' $(ARGS)

dashboard: setup ## a W&B workspace and report of the runs, saved to your account
	python -m pipelines.dashboard </dev/null

bench: setup ## time a training step, circuits, how cost grows and the phase change, into bench/README.md: about 20 minutes
	dvc repro --quiet tokenize
	python -m bench.train_step
	python -m bench.circuits
	python -m bench.growth
	python -m experiments.phase_change
	python -m bench.table

onset-law: setup ## fit tokens before the phase change to batch and context, into bench/README.md
	dvc repro --quiet tokenize
	python -m experiments.onset_law
	python -m bench.table

extract: setup ## your own model: make extract WEIGHTS=model.safetensors TOKENIZER=tokenizer.json TEXT='texts/*.txt'
	python -m pipelines.extract_foreign --weights '$(WEIGHTS)' --tokenizer '$(TOKENIZER)' --text '$(TEXT)' --bos '$(BOS)' $(ARGS)

report: setup ## draw the report again from stored records
	dvc repro --single-item report --force

compare: setup ## what moved in reports/metrics.json, for a pull request: make compare BASE=<revision or file>
	@python -m pipelines.compare '$(BASE)'

open: ## show the report in a browser
	@test -f reports/index.html || { echo "expected reports/index.html, got none; run make repro" >&2; exit 1; }
	@for opener in xdg-open open; do \
		command -v $$opener >/dev/null && $$opener reports/index.html </dev/null >/dev/null 2>&1 && exit 0; \
	done; echo "no browser could be started; the report is $(abspath reports/index.html)"

.PHONY: help setup params repro smoke test lint sweep corpora dashboard bench onset-law extract report compare open
