# crowdwise: `make demo` shows it at work, `make test` checks all of it.
# Both set up a virtual environment in .venv first; nothing else on the machine changes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
READY  := $(VENV)/.ready
PEERS  := .venv-peers

# Real crowds, when this machine has them; tests that need one are skipped elsewhere.
export CROWDWISE_DATA ?= $(abspath $(wildcard ../shared/data))
# The bytes that the data sets' public addresses serve, likewise.
export CROWDWISE_UPSTREAM ?= $(abspath $(wildcard ../shared/upstream))

.DEFAULT_GOAL := help
.PHONY: help demo test check walk bench bench-same bench-speed bench-reading bench-table bench-peers bench-report bench-limit docs clean

help:  ## List these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(READY): pyproject.toml constraints.txt src/crowdwise/_native.c
	@echo "==> Setting up $(VENV) (a minute or two, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[test,docs]"
	@touch $@

demo: $(READY)  ## Label a simulated crowd end to end, and show what came out
	@echo "==> Running the demo"
	@$(BIN)/python examples/demo.py

check: $(READY)  ## Lint and type-check
	@echo "==> Lint (ruff)"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@echo "==> Types (mypy, strict)"
	@$(BIN)/mypy

test: check  ## Run every test, doctest, example and README block
	@echo "==> Tests"
	@$(BIN)/python -m pytest --numprocesses 2 --quiet

walk: $(READY)  ## Count the files and functions behind the main calls
	@$(BIN)/python benchmarks/walk.py

bench: bench-same bench-speed bench-reading  ## Rebuild the tables under benchmarks/results

bench-same: $(READY) $(PEERS)/.ready  ## Where our results equal crowd-kit's, set by set
	$(BIN)/python benchmarks/same_as_crowdkit.py --peer $(PEERS)/bin/python

bench-speed: $(READY) $(PEERS)/.ready  ## Time and memory against crowd-kit, 10^4 to 10^7 annotations
	$(BIN)/python benchmarks/speed.py --peer $(PEERS)/bin/python

bench-reading: $(READY)  ## Time and memory to read a CSV of up to 10^7 rows
	$(BIN)/python benchmarks/reading.py

bench-table: $(READY)  ## A published table again: TABLE=lia-table2, or all; QUICK=--quick for a check
	CROWDWISE_MIRROR="$(CROWDWISE_UPSTREAM)" $(BIN)/crowdwise bench $(or $(TABLE),all) $(QUICK) \
		--output $(if $(QUICK),bench-results,benchmarks/results)

bench-peers: $(READY) $(PEERS)/.ready .venv-peers-2/.ready  ## Where crowdwise.compat equals crowd-kit, cleanlab and Snorkel
	$(BIN)/python benchmarks/same_as_peers.py --crowdkit $(PEERS)/bin/python \
		--cleanlab .venv-peers-2/bin/python --snorkel .venv-peers-2/bin/python

bench-report: $(READY)  ## A report of every real crowd, opened in a browser
	$(BIN)/python benchmarks/report_real.py

bench-limit: $(READY)  ## 10^8 annotations, once: a machine with 16 GB is enough
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

clean:  ## Remove everything that can be made again
	rm -rf build dist site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info $(VENV) $(PEERS) .venv-peers-2
