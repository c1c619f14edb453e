# crowdwise: `make demo` shows what it does, `make quick` checks most of it, `make test` all of it.
# Each sets up a virtual environment in .venv first; nothing else on the machine changes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
READY  := $(VENV)/.ready
PEERS  := .venv-peers
# Spark takes 400 MB, and does nothing without Java; tests that need both are skipped elsewhere.
SPARK  := $(if $(shell command -v java),$(shell echo ,spark))

# Real crowds, when this machine has them; tests that need one are skipped elsewhere.
export CROWDWISE_DATA ?= $(abspath $(wildcard ../shared/data))
# The bytes that the data sets' public addresses serve, likewise.
export CROWDWISE_UPSTREAM ?= $(abspath $(wildcard ../shared/upstream))

.DEFAULT_GOAL := help
.PHONY: help demo quick smoke matrix test tests test-live check walk fuzz mutants bench bench-same bench-speed bench-reading bench-engines bench-scale bench-table bench-peers bench-report bench-limit docs clean

help:  ## List these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/crowdwise/_native*.[ch])
	@echo "==> Setting up $(VENV) (a minute or two, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[test,docs$(SPARK)]"
	@touch $@

demo: $(READY)  ## Label a simulated crowd from start to finish, and show the results
	@echo "==> Running the demo"
	@$(BIN)/python examples/demo.py

check: $(READY)  ## Lint, check types and the direction of imports
	@echo "==> Lint (ruff)"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@echo "==> Types (mypy, strict)"
	@$(BIN)/mypy
	@echo "==> Direction of imports (import-linter)"
	@$(BIN)/lint-imports --no-logo

# Tests run side by side: more threads for each would only compete. What one process has compiled,
# the others need not compile again.
smoke tests: export OMP_NUM_THREADS := 1
smoke tests: export PYTHONDONTWRITEBYTECODE :=

# One file of tests per package, the README, and the laws on a few methods.
SMOKE := annotations/test_table.py io/test_reader.py inference/test_memory_engine.py base/test_aggregator.py \
	aggregate/test_dawid_skene.py aggregate/test_majority_vote.py learn/test_objectives.py learn/test_two_stage.py \
	embed/test_losses.py evaluate/test_scores.py datasets/test_registry.py simulate/test_crowds.py plan/test_planner.py \
	persist/test_values.py plot/test_confusions.py report/test_data_facts.py serve/test_api.py connect/test_link.py \
	compat/test_recorded.py cli/test_options.py bench/test_harness.py spark/test_rows.py promises/test_page.py test_import.py test_house.py
SMOKE_LAWS := MajorityVote or DawidSkene or Wawa or SoftProb or RLL

quick: $(READY)  ## Lint, check types and run a few tests of every package (about a minute)
	@$(MAKE) --no-print-directory --jobs 2 check smoke

smoke:  ## Run a few tests of every package in an environment that is there: BIN=.venv/bin
	@echo "==> Smoke tests"
	@$(BIN)/python -m pytest --quiet $(addprefix tests/,$(SMOKE)) "tests/test_docs.py::test_python_blocks_run[README.md]"
	@$(BIN)/python -m pytest --quiet tests/laws -k "$(SMOKE_LAWS)"

matrix: .venv-tox/.ready  ## Run smoke on Python 3.11 to 3.14, those that are here, with oldest and newest dependencies
	.venv-tox/bin/tox run $(MATRIX)

.venv-tox/.ready:
	@echo "==> Setting up .venv-tox with tox and uv"
	@$(PYTHON) -m venv .venv-tox
	@.venv-tox/bin/python -m pip install --quiet "tox>=4.23" "tox-uv>=1.16"
	@touch $@

test-live: $(READY) .venv-label-studio/.ready  ## Test round trips with a running Label Studio (installs it once, then two minutes)
	@$(BIN)/python benchmarks/label_studio_live.py --server .venv-label-studio/bin/label-studio

.venv-label-studio/.ready:
	@echo "==> Setting up .venv-label-studio with Label Studio (half a gigabyte, once)"
	@$(PYTHON) -m venv .venv-label-studio
	@.venv-label-studio/bin/python -m pip install --quiet "label-studio==1.23.2"
	@touch $@

test: $(READY)  ## The whole gate: check and tests, side by side
	@$(MAKE) --no-print-directory --jobs 2 check tests

# A file's tests share what is slow to make (a site, a Spark session), so files are dealt out whole;
# three at a time, since many wait for a process, a browser or a server.
tests: $(READY)  ## Run every test, doctest, example and code block in the docs
	@echo "==> Tests"
	@$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --quiet

walk: $(READY)  ## Count the files and functions behind the main calls
	@$(BIN)/python benchmarks/walk.py

fuzz: $(READY)  ## Read 10,000 random exports of every tool, with junk mixed in, and check that no record is lost
	@$(BIN)/python benchmarks/fuzz_exports.py --files $(or $(FILES),10000)

mutants: $(READY)  ## Break 50 random lines of code, one at a time, and count how many the tests notice
	@$(BIN)/python benchmarks/mutants.py $(MUTANTS)

bench: bench-same bench-speed bench-reading  ## Rerun bench-same, bench-speed and bench-reading

bench-same: $(READY) $(PEERS)/.ready  ## Compare our results with crowd-kit's on every real crowd
	$(BIN)/python benchmarks/same_as_crowdkit.py --peer $(PEERS)/bin/python

bench-speed: $(READY) $(PEERS)/.ready  ## Compare time and memory with crowd-kit, on 10^4 to 10^7 annotations
	$(BIN)/python benchmarks/speed.py --peer $(PEERS)/bin/python

bench-reading: $(READY)  ## Measure time and memory to read a CSV file of up to 10^7 rows
	$(BIN)/python benchmarks/reading.py

bench-engines: $(READY)  ## Measure how near sweeps, fits and reading are to what one machine can do
	$(BIN)/python benchmarks/engines.py

bench-scale: $(READY)  ## Fit the cost model of many machines to measurements of this one
	$(BIN)/python benchmarks/scale.py

bench-table: $(READY)  ## Rerun a published table: TABLE=lia-table2, or all; QUICK=--quick for a quick check
	CROWDWISE_MIRROR="$(CROWDWISE_UPSTREAM)" $(BIN)/crowdwise bench $(or $(TABLE),all) $(QUICK) \
		--output $(if $(QUICK),bench-results,benchmarks/results)

bench-peers: $(READY) $(PEERS)/.ready .venv-peers-2/.ready  ## Compare crowdwise.compat with crowd-kit, cleanlab and Snorkel
	$(BIN)/python benchmarks/same_as_peers.py --crowdkit $(PEERS)/bin/python \
		--cleanlab .venv-peers-2/bin/python --snorkel .venv-peers-2/bin/python

bench-report: $(READY)  ## Write a report of every real crowd, and check each page in a browser
	$(BIN)/python benchmarks/report_real.py

bench-limit: $(READY)  ## Fit 10^8 annotations once (16 GB of memory is enough)
	$(BIN)/python benchmarks/speed.py --sizes 1e8 --methods DawidSkene --output speed-1e8

$(PEERS)/.ready:
	@echo "==> Setting up $(PEERS) with crowd-kit, for comparison only"
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet "crowd-kit==1.4.2" "scikit-learn==1.7.2" "pandas==2.3.3"
	@touch $@

.venv-peers-2/.ready: constraints.txt
	@echo "==> Setting up .venv-peers-2 with cleanlab and Snorkel, for comparison only"
	@$(PYTHON) -m venv .venv-peers-2
	@.venv-peers-2/bin/python -m pip install --quiet --constraint constraints.txt "cleanlab==2.9.0" "snorkel==0.10.0"
	@touch $@

docs: $(READY)  ## Regenerate the tables in README and docs, and build the site
	@$(BIN)/python docs/build.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "built site/index.html"

clean:  ## Remove everything that can be rebuilt
	rm -rf build dist site demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis src/*.egg-info $(VENV) $(PEERS) .venv-peers-2 .venv-tox .venv-matrix .venv-label-studio
