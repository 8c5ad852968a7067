# Every target sets up what it needs: a virtual environment in .venv, with the packages of requirements/.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/ready
TEST := $(VENV)/test-ready
DOCS := $(VENV)/docs-ready
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export TOKENIZERS_PARALLELISM := false
unexport PYTHONDONTWRITEBYTECODE  # or every process compiles every module again
# Tests wait for servers: a process more than there are cores keeps these at work.
PROCESSES := $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
DAY ?= $(shell date -u +%F)
SOURCES := wikidata ud supersenses emotions lexica labelled_texts autocomplete news reddit names targets statements survey downstream
FROM := $(if $(MIRROR),--mirror $(MIRROR))
# Stages stand in the dvc.yaml of a folder; a bare name is looked up in them, anything else DVC gets as it is.
PIPELINES := dvc.yaml $(wildcard probes/*/dvc.yaml)
address = $(addsuffix :,$(shell grep -lxF -e '  $(firstword $(subst @, ,$(1))):' $(PIPELINES)))$(1)
STORED := python -m plumbline.builders.dvc.track
.DEFAULT_GOAL := help
.PHONY: help setup lock audit repro test test-slow calibrate worlds lint format bench demo full full-check reference docs site docs-data samples prune release clean

help:  ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make the virtual environment

INSTALL := $(VENV)/bin/python -m pip install --quiet --no-deps

# PyPI's build of torch for Linux needs NVIDIA's libraries too; its authors' own build without a GPU does not.
$(READY): pyproject.toml setup.py requirements/main.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; call make with PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes --requirement requirements/main.txt
	@case "$$($(VENV)/bin/python -m pip show torch | grep '^Version')" in *cpu) ;; *) \
	  $(INSTALL) --require-hashes --requirement requirements/gpu.txt ;; esac
	$(INSTALL) --no-build-isolation --editable .  # with the locked setuptools
	@touch $@

$(VENV)/%-ready: requirements/%.txt $(READY)
	$(INSTALL) --require-hashes --requirement $<
	@touch $@

lock:  ## resolve pyproject.toml into requirements/*.txt again; LOCK=--upgrade takes the newest versions
	$(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet uv
	.lock-venv/bin/python requirements/lock.py $(LOCK)
	rm -r .lock-venv

audit:  ## look up known vulnerabilities of what is locked (needs a network) and write sbom.json
	@$(PYTHON) requirements/sbom.py sbom.json
	@$(PYTHON) -m venv --clear .audit-venv
	@.audit-venv/bin/python -m pip install --quiet pip-audit || { echo "error: pip-audit could not be \
	installed; make audit needs a network (sbom.json is written all the same)" >&2; exit 1; }
	@$(PYTHON) requirements/audit.py .audit-venv/bin/pip-audit
	@rm -r .audit-venv

CHECKED := $(VENV)/checked
$(CHECKED): $(READY) params.yaml $(wildcard builders/datasets/*/*.yaml validation/params.yaml probes/*/*.yaml)
	@python -m plumbline.probes check
	@touch $@

repro: $(CHECKED)  ## run the pipeline: only what is not up to date; STAGE=name for one stage
	@python -m plumbline.builders.dvc.lock
	@$(if $(filter-out private/salt private/matched,$(wildcard private/*)),stages=$$(python -m plumbline.builders removed) && \
	  { [ -z "$$stages" ] || dvc repro --force --single-item $$stages; })
	@dvc repro $(foreach word,$(STAGE),$(call address,$(word)))
	@$(STORED)

test: $(TEST)  ## the quick tests
	python -m pytest -m 'not slow' --numprocesses $(PROCESSES) --dist loadfile

test-slow: $(TEST)  ## the tests that take longer; TESTS=... for other options or files
	python -m pytest -m slow --numprocesses 2 --dist loadfile $(TESTS)

calibrate: $(READY)  ## simulate the tests of all analyses (hours); ANALYSIS=... for some
	@python -m calibration $(ANALYSIS)

worlds: $(READY)  ## train the tiny model of a planted world again; WORLD=name
	@python -m worlds $(WORLD)

LINKS := .lint/plumbline
lint: $(TEST)  ## style, types, generated docs
	ruff check .
	ruff format --check .
	@rm -rf .lint && mkdir -p $(LINKS) && ln -s $(addprefix $(CURDIR)/,plumbline/*.py builders probes validation) $(LINKS) && ln -s $(CURDIR)/calibration $(CURDIR)/worlds .lint
	mypy
	python docs/generate.py --check

format: $(TEST)  ## bring the code into shape
	ruff check --fix .
	ruff format .

docs: $(READY)  ## write the generated parts of the docs, and what commands print
	python docs/generate.py
	python docs/printed.py

site: $(DOCS)  ## build the site of the docs under site; what leads nowhere is an error
	python docs/build.py

docs-data: $(READY)  ## render the Data Docs of all datasets under data/docs
	python -m plumbline.validation docs

bench: $(TEST)  ## measure builder, engine, reader and trainings against the usual tools, and a GPU if there is one
	python benchmarks/scale.py
	python benchmarks/engine.py
	python benchmarks/digits.py
	python benchmarks/memory.py
	python benchmarks/latent.py
	python benchmarks/countries.py
	python benchmarks/aggregate.py
	python benchmarks/corpora.py
	python benchmarks/versions.py
	python benchmarks/training.py
	$(if $(wildcard /dev/nvidia0),python benchmarks/gpu.py,@echo "benchmarks/gpu.py: left out, there is no GPU")

demo: $(READY)  ## show on real names and control models what a study finds, on a page for newcomers
	@plumbline demo

full: $(READY)  ## the complete study of all five papers, params/full.yaml: fetch and run (docs/howto/experiments.md); MIRROR=DIR to read the sources from files
	@python -m plumbline.probes use params/full.yaml --date $(DAY) $(FROM)
	for source in $(SOURCES); do python -m plumbline.builders fetch $$source --date $(DAY) $(FROM) || exit 1; done
	@python -m plumbline.probes check
	@dvc repro
	@$(STORED)

reference: $(READY)  ## ten public models on the sample, params/reference.yaml; OWNER=me VERSION=1.0.0 publishes their tables
	@python -m plumbline.probes use params/reference.yaml
	@python -m plumbline.probes check
	@dvc repro
	@$(STORED)
	@$(if $(OWNER),for table in pmi/[!w]* recall values nationality compass; do for at in data/tables/$$table; do \
	  name=$$(echo "$${at#data/tables/}" | tr / -); \
	  python -m plumbline.builders publish "$$at" --repo "$(OWNER)/plumbline-$$name" --version $(VERSION) || exit 1; \
	done; done,echo "tables: data/tables; OWNER=... VERSION=... publishes them")

full-check: $(READY)  ## what params/full.yaml lacks
	@python -m plumbline.probes check params/full.yaml --date $(DAY)

samples: $(TEST)  ## make data/samples anew with the real clients
	PYTHONPATH=. python tests/samples.py

prune: $(READY)  ## list results that no stage makes any more
	python -m plumbline.builders prune

release: $(READY)  ## build and check a release under dist; UPLOAD=--upload sends it to PyPI
	@python requirements/release.py $(UPLOAD)

clean:  ## remove the virtual environment and the caches of the tools
	rm -rf $(VENV) .lint site .site .mypy_cache .ruff_cache .pytest_cache *.egg-info
