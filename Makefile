# Everything that is done with this project, by one word each. `make` alone lists the words.
#
# On a fresh machine only make and Python 3.11 or newer are needed: the virtual environment is made
# at the first use, from requirements that are locked by hash, and again only when those change.

# The first of the usual names that is new enough; `make PYTHON=/path/to/python3 …` says otherwise.
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)) python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
# Tests run on as many processes as there are processors, each file on one of them, so that what a file starts is started
# once; and in one order of sets each time. CONTRIBUTING.md tells of the gates.
PYTEST := PYTHONHASHSEED=0 $(BIN)/pytest -n auto --dist loadscope
# Where Python is told to keep nothing compiled, as in many images, every worker compiles all tests anew and every program
# that a story starts compiles all sources.
export PYTHONDONTWRITEBYTECODE :=
# What `make crash-matrix` is about: the databases, and only cells in whose name this occurs.
STORES := sqlite postgresql
ONLY :=
# In percent, of all lines and branches; what decides about money is held to all of them.
COVERED_MIN := 95
COVERED := --cov --cov-report=term:skip-covered --cov-fail-under=$(COVERED_MIN)
DECIDING := src/payrelay/core/**,src/payrelay/*/rules/**,src/payrelay/gateways/payhere/wire/*,tools/payrelay_tools/laravel/*
DECIDED = $(BIN)/coverage report -m --skip-covered --include='$(DECIDING)' --fail-under=100 > $(VENV)/.deciding \
	|| { cat $(VENV)/.deciding; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help demo serve docs test check lint tested whole units stories integration campaign laws crash-matrix client-stories storm drills shop-client examples generators mutate \
	fuzz try-image try-units format simulate-faults reconcile-lives bench bench-growth work-budget lock pins clean
.DELETE_ON_ERROR:

help: ## list these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# `make demo KEEP=1` goes on where the last one with it ended. `make demo HOST=0.0.0.0` lets a phone in the same network open it. Some shells have a HOST of their own, which isn't meant.
demo: $(VENV)/.demo ## start the service with a gateway simulator, and print calls to copy
	@$(BIN)/payrelay demo $(if $(filter command,$(firstword $(origin HOST))),--host $(HOST)) $(if $(KEEP),--keep) --shop examples/shop/python/shop.py

serve: $(VENV)/.runtime ## start the service as it is configured
	@$(BIN)/payrelay serve

# At the desk a law is tried with a fifth of its examples; at every push with all of them.
test: $(VENV)/.dev ## the gate at the desk: units, and one story of each kind
	@TEST_DEPTH=0.2 $(PYTEST) -m "(unit and not postgresql and not deep) or smoke"

check: lint tested ## the gate of a push: format, lint, types, units with what they cover, stories

lint: $(VENV)/.dev ## format, lint, types and dead code alone
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/vulture

tested: $(VENV)/.dev ## what a push holds, without lint
	@$(PYTEST) -m "unit or smoke or story" $(COVERED)
	@$(DECIDED)

whole: $(VENV)/.dev ## what a landing holds, without lint: tested and integration as one run, with one summary
	@$(PYTEST) -m "unit or smoke or story or integration" $(COVERED)
	@$(DECIDED)

units: $(VENV)/.dev ## units on every database, and what they cover
	@$(PYTEST) -m unit $(COVERED)
	@$(DECIDED)

stories: $(VENV)/.dev ## the whole program over sockets
	@$(PYTEST) -m "smoke or story"

integration: $(VENV)/.dev ## what a landing holds beside check: browsers, crashes, both databases, whatever takes long
	@$(PYTEST) -m integration

# Everything that is drawn is drawn from SEED, which is the commit's where none is named.
SEED ?= $(shell printf '%d' "0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)")
DEPTH := 20

campaign: ## look far deeper, for hours: laws, crash matrix, storm, many lives, mutants
	@echo "The same again: make campaign SEED=$(SEED)"
	@$(MAKE) --keep-going laws crash-matrix client-stories storm simulate-faults mutate SEEDS=20000 FROM=$(SEED) SEED=$(SEED)

laws: $(VENV)/.dev ## try each law with DEPTH=20 times as many examples, from SEED on
	@echo "The same again: make laws SEED=$(SEED) DEPTH=$(DEPTH)"
	@TEST_SEED=$(SEED) TEST_DEPTH=$(DEPTH) TEST_FUZZ_SEED=$(SEED) $(PYTEST) \
		-m "hypothesis or fuzz" --hypothesis-profile=campaign --hypothesis-seed=$(SEED)

SECONDS := 60

fuzz: $(VENV)/.fuzz ## feed the reader of the gateway's replies what reaches new code, for SECONDS=60
	@mkdir -p $(VENV)/replies
	@$(BIN)/python tests/gateways/http/fuzz_reply_reader.py -max_total_time=$(SECONDS) -max_len=4096 $(VENV)/replies

client-stories: $(VENV)/.dev ## play every story with every client, with each fault at each place
	@TEST_DEPTH=$(DEPTH) $(PYTEST) -m integration tests/clients

crash-matrix: $(VENV)/.dev ## kill the program at every stage of every operation, on both databases
	@$(BIN)/python -m tests.matrix.crash_matrix --stores $(STORES) --only "$(ONLY)"

storm: $(VENV)/.dev ## send 1,000 requests at one moment to three processes on PostgreSQL
	@$(BIN)/python -m tests.matrix.storm

# Each drill is a program over real servers; `make drills ONLY=restore OPERATIONS=1000` runs those with that in their name.
# MEGABYTES=2500 fills the database first that is backed up; DRILLS_TABLE=1 writes what was measured into docs/drills.md.
OPERATIONS ?= 100
MEGABYTES ?= 0

drills: $(VENV)/.dev ## restore, fail over, kill, pause and upgrade under load; the gateway's ledger judges
	@$(BIN)/python -m tests.drills.run_drills --only "$(ONLY)" --operations $(OPERATIONS) --megabytes $(MEGABYTES) $(if $(DRILLS_TABLE),--table)

# Both need root and some gigabytes of disk; what they install from Debian is named at their heads.
try-image: ## build the image with buildah, and run it with podman as an unknown user
	@tests/deploy/trials/image.sh

try-units: ## boot a Debian with systemd, and type what docs/production says
	@tests/deploy/trials/units.sh

# The page needs no build by whoever reads it, so a copy of what is built stands beside it. Needs node and npm.
shop-client: ## build the TypeScript client, and copy it into the example shop's page
	@npm ci --ignore-scripts --silent --prefix clients/typescript
	@npm run --silent build --prefix clients/typescript
	@rm -rf examples/shop/page/payrelay && mkdir examples/shop/page/payrelay
	@cd clients/typescript/dist && find . -name '*.js' -exec cp --parents {} ../../../examples/shop/page/payrelay \;

examples: $(VENV)/.dev ## record the examples of the API's description anew, from a demo
	@$(BIN)/python -m tests.scenarios.recording

# Strict: what leads nowhere fails. The whole repository is its source, so that links between folders hold.
SITE := build/site

docs: $(VENV)/.dev ## build the docs as a site, to be read without a network
	@rm -rf $(SITE)
	@$(BIN)/sphinx-build -q -W -n -c docs/site -d build/doctrees . $(SITE)
	@echo "Open $(SITE)/index.html"

generators: $(VENV)/.generators ## install what makes clients of the API's description; needs node and npm

mutate: $(VENV)/.mutate ## change the core in every way, and count what the tests notice
	@$(BIN)/mutmut run
	@$(BIN)/mutmut export-cicd-stats > /dev/null
	@$(BIN)/python tests/mutants.py mutants/mutmut-cicd-stats.json

format: $(VENV)/.dev ## write the sources in the one format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# One seed is one life of the program: a failure is found again by `make simulate-faults SEEDS=1 FROM=<seed>`.
# PAGES=1 leaves out the lives in which nobody comes to the gateway's pages: two of three. LOSSES=1 leaves out those
# whose database never goes back in time: seven of eight.
SEEDS ?= 1000
FROM ?= 1
JOBS ?= $(shell nproc)

simulate-faults: $(VENV)/.dev ## live through SEEDS=1000 lives full of faults and crashes, from seed FROM=1 on
	@$(BIN)/python -m tests.simulation.simulate_faults --seeds $(SEEDS) --from $(FROM) --jobs $(JOBS) $(if $(PAGES),--with-pages) $(if $(LOSSES),--with-losses)

reconcile-lives: $(VENV)/.dev ## compare the ledgers of SEEDS=1000 lives, with planted differences, with our books
	@$(BIN)/python -m tests.simulation.reconcile_lives --seeds $(SEEDS) --from $(FROM) --jobs $(JOBS)
# One number a step, and no time: it is the same on every machine. A push that does more than tests/work/budget.json fails.
work-budget: $(VENV)/.dev ## count what a read, a charge and a replay make the program do on SQLite, and make that the budget
	@$(BIN)/python -m tests.work.measure --write

bench: $(VENV)/.bench ## measure, with the peers beside it
	@bench/install.sh
	@$(BIN)/python bench/run.py

SIZES ?= 10000,1000000

bench-growth: $(VENV)/.bench ## compare databases of SIZES=10000,1000000 operations: time of each thing, bytes of each operation
	@bench/install.sh
	@PYTHONPATH=. $(BIN)/python bench/growth.py --operations $(SIZES)

lock: $(VENV)/.runtime ## write requirements/*.lock anew from pyproject.toml
	@$(PIP) install uv
	@$(LOCK) -o requirements/runtime.lock
	@$(LOCK) --extra tracing -o requirements/tracing.lock
	@$(LOCK_ALONE) -o requirements/service.lock
	@$(COMPILE) requirements/generators.in --universal --python-version 3.11 --generate-hashes --no-header --quiet \
		-o requirements/generators.lock
	@$(LOCK) --group demo -o requirements/demo.lock
	@$(LOCK) --group sbom -o requirements/sbom.lock
	@$(LOCK) --group dev -o requirements/dev.lock
	@$(LOCK) --group dev --group fuzz -o requirements/fuzz.lock
	@$(LOCK) --group dev --group mutate -o requirements/mutate.lock
	@$(LOCK) --group dev --group bench -o requirements/bench.lock

pins: ## look up the commit of each action and the digest of each image, and write them
	@$(PYTHON) release/pins.py write

clean: ## remove what was made here: the environment, caches, the demo's data
	@rm -rf $(VENV) mutants .payrelay .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis .coverage .coverage.*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Extras stay in the lock: of a package that is locked without its extra, some versions of pip take the newest release, and
# refuse it as not locked.
COMPILE := $(BIN)/uv pip compile --no-strip-extras
LOCK_ALONE := $(COMPILE) pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --quiet
LOCK := $(LOCK_ALONE) --group build

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Payrelay needs Python 3.11 or newer, and found: $$($(PYTHON) --version 2>&1 || true)"; \
		echo "Name another one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "Python can't make virtual environments here; on Debian: apt-get install python3-venv"; exit 1; }

# A stamp is newer than what it was made from, or it is made again.
PACKAGES := pyproject.toml src/payrelay_simulator/pyproject.toml tools/pyproject.toml

$(VENV)/.runtime: requirements/runtime.lock $(PACKAGES) | $(BIN)/pip
	$(call install,runtime)

# The shop of the demo uses the Python client, as a shop of somebody else would: installed.
$(VENV)/.demo: requirements/demo.lock $(PACKAGES) clients/python/pyproject.toml | $(BIN)/pip
	$(call install,demo,-e clients/python)

$(VENV)/.dev: requirements/dev.lock $(PACKAGES) clients/python/pyproject.toml | $(BIN)/pip
	$(call install,dev,-e clients/python)

$(VENV)/.fuzz: requirements/fuzz.lock $(PACKAGES) | $(BIN)/pip
	$(call install,fuzz)

$(VENV)/.mutate: requirements/mutate.lock $(PACKAGES) | $(BIN)/pip
	$(call install,mutate)

$(VENV)/.bench: requirements/bench.lock $(PACKAGES) | $(BIN)/pip
	$(call install,bench)

# Both have requirements of their own, and so places of their own.
$(VENV)/.generators: requirements/generators.lock tests/generated/package-lock.json | $(BIN)/pip
	@$(PYTHON) -m venv $(VENV)/generators
	@$(VENV)/generators/bin/pip --disable-pip-version-check --quiet install --require-hashes -r requirements/generators.lock
	@mkdir -p $(VENV)/node
	@cp tests/generated/package.json tests/generated/package-lock.json tests/generated/.npmrc $(VENV)/node/
	@npm ci --ignore-scripts --silent --prefix $(VENV)/node
	@touch $@

define install
@echo "Installing requirements/$(1).lock"
@$(PIP) install --require-hashes -r requirements/$(1).lock
@$(PIP) install --no-deps --no-build-isolation -e . -e src/payrelay_simulator -e tools $(2)
@touch $@
endef
