# Lookout. `make live` starts everything; `make check ALL=1` is what the continuous integration runs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Playwright brings a Node of its own, for machines that have none.
NODE ?= $(shell command -v node || ls $(VENV)/lib/python3*/site-packages/playwright/driver/node)
# What checks JavaScript comes by npm, and needs a Node of version 20 at least. `make lint NPM=npm` fails where it is missing.
NPM ?= $(shell node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && command -v npm)
NPM_INSTALLED := node_modules/.installed
# It installs in a third of the time that pip takes, which does so where uv finds no way through a network.
UV := uv==0.13.9
WITH_UV := $(BIN)/uv pip install --quiet --no-cache --compile-bytecode --python $(BIN)/python
WITH_PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Only for its recorded flights, so without what it depends on.
FLIGHTS := traffic==2.13

# These tell whether the files that are made from others are as new as these.
MADE := $(addprefix tests/, plans/test_schema.py webapp/test_static.py webapp/test_translations.py house/test_marked_texts.py)

# What holds no strings of ours; without places, so that a moved line changes no file.
MESSAGES := --no-location --no-obsolete --no-wrap --ignore .venv --ignore node_modules --ignore build --ignore var \
	--ignore static/bundle --ignore static/vendor --ignore tests --ignore bench --ignore docs

# Modules are compiled once, not in each of the many processes that Lookout and its tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: live test test-python test-js check lint lint-rules lint-types lint-made lint-js explore bench bench-place chaos soak fuzz bundle messages release install lock clean

live: $(INSTALLED)
	$(BIN)/python manage.py live

# Tests that are marked `long` run with `ALL=1` only, as in the continuous integration. How long each test took is kept in
# build/durations: the next run says what became slower.
TIER := $(if $(ALL),all,test)
# Tests that need a Lookout, Spark or a browser are *served*. They mostly wait, so they have a worker of their own beside
# one for each core (tests/house/sharing.py).
CORES := $(shell getconf _NPROCESSORS_ONLN)

# With ALL=1, and in the continuous integration, what share of the code the tests reach is measured, and held against the
# floors in pyproject.toml and .c8rc.json. A run that leaves out what has passed in another one (WITHOUT=test) measures nothing.
MEASURE := $(if $(WITHOUT),,$(ALL)$(CI))
MEASURED := -W ignore::RuntimeWarning -m slipcover --dont-wrap-pytest --source streaming,webapp --omit "*/migrations/*,*/compiled_*" \
	--branch --json --out build/coverage/$(TIER).json
QUIET := -W "ignore:Module already imported so cannot be rewritten; slipcover" -W "ignore:Unable to activate pytest branch"
COVERING := $(if $(MEASURE),$(MEASURED)) -m pytest $(if $(MEASURE),$(QUIET))
COVERED := $(if $(MEASURE),$(BIN)/python tools/coverage.py build/coverage/$(TIER).json)

# Where a run keeps how long its tests took, and which passed; tests that passed in the run `WITHOUT` are left out.
kept = --junitxml=build/durations/$(1).xml $(if $(WITHOUT),--without=build/durations/$(WITHOUT).passed)

test: $(INSTALLED) test-python test-js

# With ALL=1, the served tests run after the others, some of which start so many processes that a Lookout would starve.
test-python: $(INSTALLED)
	mkdir -p build/coverage
ifdef ALL
	$(BIN)/python $(COVERING) -m "not spark and not browser" -n $(CORES) --dist worksteal -p no:tests.house.browser_required \
		$(call kept,all-steps)
	$(COVERED)
	$(BIN)/python -m pytest -m "spark or browser" -n $(CORES) --lookouts $(CORES) --dist loadfile $(call kept,all-served)
else
	$(BIN)/python $(COVERING) -m "not long" -n $(shell expr $(CORES) + 1) --dist loadfile $(call kept,test)
	$(COVERED)
endif

test-js: $(INSTALLED) $(if $(and $(MEASURE),$(NPM)),$(NPM_INSTALLED))
	mkdir -p build/durations
	$(if $(WITHOUT),@echo "The tests of JavaScript have passed.",$(if $(and $(MEASURE),$(NPM)),node_modules/.bin/c8) $(NODE) --test \
		--test-reporter=spec --test-reporter-destination=stdout \
		--test-reporter=junit --test-reporter-destination=build/durations/javascript.xml \
		$(wildcard tests/js/*.test.js tests/js/*.test.mjs))

check: $(INSTALLED)
	$(MAKE) lint
	$(MAKE) test

# What takes about a minute, so before each commit; also whether files that are made from others are as new as these, which
# `make test` finds out, too.
lint: $(INSTALLED)
	$(MAKE) --jobs=$(CORES) --output-sync=target lint-types $(if $(WITHOUT),,lint-made) $(if $(NPM),lint-js) lint-rules
	$(if $(NPM),,@echo "JavaScript is not checked: this needs npm and Node 20 or newer.")

lint-rules: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

lint-types: $(INSTALLED)
	$(BIN)/mypy

lint-made: $(INSTALLED)
	$(BIN)/python -m pytest -q -p no:tests.house.browser_required $(MADE)

# Format, rules, types, and exports that nothing uses.
SCRIPTS := "static/js/**/*.js" "tests/js/**/*.mjs" "tools/*.mjs" "*.js"
lint-js: $(NPM_INSTALLED)
	node_modules/.bin/prettier --check --cache $(SCRIPTS)
	node_modules/.bin/eslint --cache --cache-location node_modules/.cache/eslint/ $(SCRIPTS)
	node_modules/.bin/tsc
	node_modules/.bin/tsc -p tsconfig.strict.json
	node_modules/.bin/knip --no-progress

# Examples and seeds that no check has had yet, tests in a random order, and each file of tests by itself. It takes hours;
# one room takes minutes: `make explore OPTIONS=tests/sketch`.
EXPLORED := -m "not spark and not browser" -p no:tests.house.browser_required -q
explore: $(INSTALLED)
	$(BIN)/python -m pytest $(EXPLORED) -n auto --random-order --random-order-bucket=global $(OPTIONS)
	find $(or $(filter tests/%,$(OPTIONS)),tests) -name "test_*.py" | sort | xargs -P 2 -I{} \
		sh -c '$(BIN)/python -m pytest $(EXPLORED) {} || [ $$? = 5 ]'
	$(BIN)/python -m pytest -m "(hypothesis or seeds) and not spark and not browser" -n 2 --hypothesis-profile=exploring --seeds=all \
		$(OPTIONS)

# For instance `make bench OPTIONS="--scenario demo"`.
bench: $(INSTALLED)
	$(BIN)/python -m bench $(OPTIONS)

# The workload of PLACE*, for instance `make bench-place OPTIONS="--part growth"`.
bench-place: $(INSTALLED)
	$(BIN)/python -m bench.place $(OPTIONS)

# Faults on purpose under load, for instance `make chaos OPTIONS="--seed 7 --faults 10 --only kill-engine"`.
chaos: $(INSTALLED)
	$(BIN)/python -m tests.chaos $(OPTIONS)

# Memory and the age of answers in a long run, for instance `make soak OPTIONS="--minutes 10 --rate 20000"`.
soak: $(INSTALLED)
	$(BIN)/python -m bench.soak $(OPTIONS)

# Mutated input for every decoder, for instance `make fuzz OPTIONS="--count 10000 --feed csv"`.
fuzz: $(INSTALLED)
	$(BIN)/python -m tests.decoders.fuzz $(OPTIONS)

# After a change of static/js: the one file of its modules that browsers load.
bundle: $(INSTALLED)
	$(BIN)/python manage.py bundle_modules

# After a change of visible strings: the files of translations, and what they compile to (docs/translating.md).
messages: $(INSTALLED)
	$(BIN)/python manage.py makemessages --all $(MESSAGES)
	$(BIN)/python manage.py makemessages --all --domain djangojs $(MESSAGES)
	$(BIN)/python manage.py compilemessages --ignore .venv

# What is committed becomes packages in dist/ and, where docker or podman runs, an image (CONTRIBUTING.md).
release: $(INSTALLED)
	$(BIN)/python -m tools.release

install: $(INSTALLED)

# The last step compiles what the engine would compile at its first start.
$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Lookout needs Python 3.11 or newer; set PYTHON to one: make PYTHON=python3.12 live")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	-$(WITH_PIP) $(UV)
	$(WITH_UV) -r requirements.lock || $(WITH_PIP) -r requirements.lock
	$(WITH_UV) --no-deps $(FLIGHTS) -e . || $(WITH_PIP) --no-deps $(FLIGHTS) -e .
	$(BIN)/python -c 'import streaming.compiled_json, streaming.sketch.compiled_groups'
	@touch $@

$(NPM_INSTALLED): package-lock.json
	$(NPM) ci --ignore-scripts --no-audit --no-fund
	@touch $@

lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install '.[test]'
	head -n 2 requirements.lock > build/requirements.lock
	build/lock/bin/python -m pip freeze --all --exclude lookout --exclude pip >> build/requirements.lock
	echo 'async-timeout==5.0.1 ; python_full_version < "3.11.3"' >> build/requirements.lock
	mv build/requirements.lock requirements.lock

clean:
	rm -rf $(VENV) node_modules build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
