# pathsum: type `make help`.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# The variable $(1) as one word of the shell, whatever its quotes and dollars.
quoted  = '$(subst ','\'',$(value $(1)))'
TEXTS   = python -m pipelines.texts --text=$(call quoted,TEXT) --jobs=$(call quoted,JOBS) --separator=$(call quoted,SEPARATOR)
OPENED  = python -m pipelines.opened $(foreach v,WEIGHTS MODELS TOKENIZER TEXT SEPARATOR BOS,$(if $($v),--$(shell echo $v | tr A-Z a-z)=$(call quoted,$v)))
JOBLIB  = $(if $(filter-out 1,$(JOBS)),hydra/launcher=joblib hydra.launcher.n_jobs=$(call quoted,JOBS))
LEET    = runs/leet
LAYOUT  = {"workspace_layout": {"left_sidebar": 0.4}} # else the names of runs are cut off
export PATH := $(abspath $(BIN)):$(PATH)
export PYTHONDONTWRITEBYTECODE = 1
export PYTHONHASHSEED = 0
unexport PYTHONWARNINGS # "error" would end libraries that only warn
unexport PYTHONSAFEPATH # which would hide pipelines/

# What each target reads. A variable on the command line that it does not read is an error, not a setting without effect.
READS_repro   = JOBS TEXT SEPARATOR
READS_sweep   = JOBS ARGS
READS_corpora = TEXT SEPARATOR JOBS ARGS
READS_report  = WEIGHTS MODELS TOKENIZER TEXT SEPARATOR BOS ARGS
READS_compare = BASE
READS_kill    = SEED
GIVEN  := $(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $v)),$v))
UNREAD := $(filter-out PYTHON VENV $(foreach t,$(MAKECMDGOALS),$(READS_$t)),$(GIVEN))
$(if $(UNREAD),$(error make $(MAKECMDGOALS): $(UNREAD) would have no effect; expected no variables but PYTHON VENV $(foreach t,$(MAKECMDGOALS),$(READS_$t))))

$(if $(strip $(VENV)),,$(error VENV: expected a folder, got none))
$(if $(word 2,$(VENV)),$(error VENV: expected a folder without blanks in its path, got $(VENV)))

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready .dvc/tmp/plots.html ## create .venv from requirements.lock

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else "pathsum needs Python 3.11 to 3.13, got %d.%d; try make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.lock)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

.dvc/tmp/plots.html: $(VENV)/.ready pipelines/plots_template.py # what `dvc plots show` fills
	$(BIN)/python -m pipelines.plots_template

params: setup ## compose conf/ into params.yaml
	python -m pipelines.compose

repro: setup ## compute every result that is out of date, and the report; JOBS=N models at a time; on your own text: make repro TEXT='notes/**/*.md'
	$(if $(filter undefined,$(origin TEXT)),python -m pipelines.repro $(if $(JOBS),--jobs=$(call quoted,JOBS)),$(TEXTS) --only)

smoke: setup ## run every stage on tiny models, in a scratch copy
	bash pipelines/smoke.sh

kill: setup ## kill `make repro` on tiny models ten times, and compare what the same command then makes: make kill SEED=1
	python -m tests.kill $(if $(SEED),--seed=$(call quoted,SEED))

test: setup ## check lint and types, and run all tests, including every stage on tiny models
	ruff check .
	ruff format --check .
	@log=$$(mktemp); mypy >"$$log" 2>&1 & types=$$!; \
		pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder; tests=$$?; \
		wait $$types; types=$$?; echo "mypy:"; cat "$$log"; rm -f "$$log"; exit $$((tests || types))

cluster: setup ## run sweeps on Slurm, Ray, torchrun and a DVC remote on this machine, and kill parts of them
	PATHSUM_CLUSTER=1 pytest tests/cluster

lint: setup ## format and lint in place
	ruff format .
	ruff check --fix .

sweep: setup ## train the grid, JOBS=N models at a time (default: by cores and memory), or an ad-hoc sweep: make sweep JOBS=2 ARGS='model.n_layers=1,2'
	$(if $(ARGS),python -m pipelines.train --multirun $(JOBLIB) $(ARGS),python -m pipelines.repro $(if $(JOBS),--jobs=$(call quoted,JOBS)))

corpora: setup ## the same for those of conf/corpora.yaml and several texts, with a row of verdicts each: make corpora TEXT='essays=essays/**/*.txt'
	$(if $(filter undefined,$(origin TEXT)),python -m pipelines.texts --jobs=$(call quoted,JOBS),$(TEXTS)) --rows $(ARGS)

leet: setup ## show the runs of Weights & Biases in the terminal, without an account
	@test -d runs/wandb || { echo "expected runs/wandb, got none; run make repro" >&2; exit 1; }
	@test -f $(LEET)/wandb-leet.json || { mkdir -p $(LEET); echo '$(LAYOUT)' >$(LEET)/wandb-leet.json; }
	WANDB_CONFIG_DIR=$(abspath $(LEET)) wandb leet runs/wandb

dashboard: setup ## save a Weights & Biases workspace and report of the runs to your account
	python -m pipelines.dashboard </dev/null

bench: setup ## measure training steps and the growth of cost, and write bench/README.md
	python -m pipelines.repro tokenize
	python -m bench.train_step
	python -m bench.growth
	python -m bench.table

report: setup ## write the report again from stored records; on your own model: make report WEIGHTS=mine.safetensors TOKENIZER=tokenizer.json TEXT='texts/*.txt'
	$(if $(WEIGHTS)$(MODELS)$(TEXT),$(OPENED) $(ARGS),python -m pipelines.repro --report)

compare: setup ## print the changes of reports/metrics.json for a pull request: make compare BASE=<revision or file>
	@python -m pipelines.compare $(call quoted,BASE)

open: ## show the report in a browser
	@test -f reports/index.html || { echo "expected reports/index.html, got none; run make repro" >&2; exit 1; }
	@for opener in xdg-open open; do \
		command -v $$opener >/dev/null && $$opener reports/index.html </dev/null >/dev/null 2>&1 && exit 0; \
	done; echo "no browser could be started; the report is $(abspath reports/index.html)"

.PHONY: help setup params repro smoke kill test cluster lint sweep corpora leet dashboard bench report compare open
