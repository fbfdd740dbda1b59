# The commands of GradSight.  The first run of any of them installs what it needs into .venv and node_modules.
#   make demo PYTHON=/path/to/python3 NODE=/path/to/node    uses these interpreters
# Plain POSIX make, so that any make will do; the work is in .ci/setup and in the tools themselves.

PYTHON ?=
NODE ?= node

# Asked for when a command runs: the folder of the programs differs between systems.
VENV = $$(.ci/setup which .venv)
TSC = $(NODE) node_modules/typescript/bin/tsc
BIOME = $(NODE) node_modules/@biomejs/biome/bin/biome
PYTEST_FLAGS ?= -n 2 --dist worksteal
REPORTS = build/reports

.PHONY: release-version release-check release-mirror publish-marketplace publish-openvsx licences help demo test test-python test-facts test-setups test-vsix test-client test-torch test-models test-live test-nodes test-vscode pictures vsix vscode site settings lint format typecheck fuzz facts \
    pins clean setup-python setup-node

help:
	@echo 'make demo       set up, then show what GradSight does on shipped examples'
	@echo 'make test       set up, then run the tests: Python and editor client'
	@echo 'make test-facts  go through hundreds of operators and programs on torch, and compare with what is said of them'
	@echo 'make test-setups  carry out the pages and the workflows, install what a release ships, start real editors and watched programs'
	@echo 'make test-vsix  pack the extension, and try what is in it'
	@echo 'make test-torch TORCH=2.5.1  run the tests of the probe on another torch, in an environment under build/'
	@echo 'make vsix       pack the VS Code extension for this machine (TARGETS=all: for every platform)'
	@echo 'make vscode     open VS Code in a browser, with the extension and a sample workspace'
	@echo 'make test-models  hold the models of libraries against the libraries, in an environment of their own'
	@echo 'make test-live  watch a live Jupyter kernel, in an environment of its own'
	@echo 'make test-nodes  watch a program on two nodes, which are network namespaces (as root)'
	@echo 'make test-vscode  drive the packed extension in a real VS Code'
	@echo 'make pictures   the same, take the pictures of the manual from it, and every feature in three themes'
	@echo 'make site       build the manual as a web site'
	@echo 'make settings   write the settings of the editor from the server'"'"'s own model'
	@echo 'make lint       check style, imports between packages, and formatting'
	@echo 'make format     rewrite the sources in the style of the project'
	@echo 'make typecheck  mypy (strict) and tsc'
	@echo 'make fuzz       compare random programs with torch, for long'
	@echo 'make facts      measure the operator facts again, on real torch'
	@echo 'make pins       resolve the pinned versions again'
	@echo 'make release-check  build the wheel, the source and the extension for every platform, and try each in an empty environment'
	@echo 'make release-version TAG=v1.2.3  give every file the version of a tag, and the changelog the day'
	@echo 'make licences   write the list of the licences of what the extension carries'
	@echo 'make clean      remove everything that was installed or built'

demo: setup-python
	@$(VENV) -m gradsight_dev.demo

test: test-client test-python

test-python: setup-python
	@mkdir -p $(REPORTS)
	OMP_NUM_THREADS=1 $(VENV) -m pytest $(PYTEST_FLAGS) -m 'not facts and not packed and not setups' --junitxml=$(REPORTS)/python.xml

test-facts: setup-python
	@mkdir -p $(REPORTS)
	OMP_NUM_THREADS=1 $(VENV) -m pytest $(PYTEST_FLAGS) -m facts --junitxml=$(REPORTS)/facts.xml

test-setups: setup-python setup-node
	@mkdir -p $(REPORTS)
	OMP_NUM_THREADS=1 $(VENV) -m pytest $(PYTEST_FLAGS) -m setups --junitxml=$(REPORTS)/setups.xml

test-vsix: setup-python setup-node
	@mkdir -p $(REPORTS)
	OMP_NUM_THREADS=1 $(VENV) -m pytest $(PYTEST_FLAGS) -m packed --junitxml=$(REPORTS)/packed.xml

# Say which: TORCH=2.5.1, or TORCH=newest.
TORCH =

test-torch: setup-python
	@$(VENV) -m gradsight_dev.other_torch $(TORCH)

test-client: setup-node
	@mkdir -p $(REPORTS)
	$(NODE) client/build.mjs --tests
	$(NODE) --test --test-reporter=spec --test-reporter-destination=stdout \
	    --test-reporter=junit --test-reporter-destination=$(REPORTS)/client.xml build/client-tests/*.test.js .ci/workflows.test.mjs
	$(TSC) --project .
	$(BIOME) check --error-on-warnings
	$(NODE) client/build.mjs

# The libraries have an environment of their own; torch comes first, so that nothing else chooses it.
test-models: setup-python
	@test -d build/models || $(VENV) -m venv build/models
	@$$(.ci/setup which build/models) -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@$$(.ci/setup which build/models) -m pip install --quiet --disable-pip-version-check --requirement tests/models/requirements.txt
	OMP_NUM_THREADS=1 $$(.ci/setup which build/models) tests/models/recorder.py --check
	OMP_NUM_THREADS=1 $$(.ci/setup which build/models) tests/models/surface.py --check
	PYTHONPATH=$$PWD/tests/models/at_start OMP_NUM_THREADS=1 $$(.ci/setup which build/models) tests/models/callbacks.py
	PYTHONPATH=$$PWD/tests/models/at_start OMP_NUM_THREADS=1 $(VENV) tests/models/from_config.py $$(.ci/setup which build/models)

# torch comes first, so that nothing else chooses it.
test-live: setup-python
	@test -d build/live || $(VENV) -m venv build/live
	@$$(.ci/setup which build/live) -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@$$(.ci/setup which build/live) -m pip install --quiet --disable-pip-version-check ipykernel
	OMP_NUM_THREADS=1 $$(.ci/setup which build/live) tests/live/kernel.py

# Installs iproute2 where it is missing; says so, and ends with 3, where namespaces cannot be made.
test-nodes: setup-python
	@$(VENV) -m gradsight_dev.two_nodes

# Empty: this machine.
TARGETS =

# Node is looked for first, and packing needs no torch.
vsix: setup-node
	@python=$$(PYTHON='$(PYTHON)' .ci/setup packing | tail -n 1) && \
	    $$python -m gradsight_dev.package_vsix --node $(NODE) $(TARGETS:%=--target=%)

# Empty: the extension was packed before, by `release-check` say.
PACKING = vsix

# Two files at a time: one of them mostly waits.
test-vscode: setup-python $(PACKING)
	@mkdir -p $(REPORTS)
	@.ci/vscode >/dev/null && .ci/vscode --browser >/dev/null
	@$(NODE) -e "import('./tests/client_e2e/workbench.mjs').then((bench) => bench.interpreterWithTorch())"
	$(NODE) --test --test-concurrency=2 --test-reporter=spec --test-reporter-destination=stdout \
	    --test-reporter=junit --test-reporter-destination=$(REPORTS)/vscode.xml tests/client_e2e/*.test.mjs

# The pictures of the manual, as the tests take them, and the words in each; then every feature in three themes.
pictures:
	GRADSIGHT_PICTURES=1 $(MAKE) test-vscode
	$(NODE) tests/client_e2e/looks.mjs

vscode: setup-python vsix
	@$(NODE) tests/client_e2e/open.mjs

site: setup-python
	@$(VENV) -m gradsight_dev.site

settings: setup-python
	@$(VENV) -m gradsight_dev.settings_schema

lint: setup-python setup-node
	$(VENV) -m ruff check
	$(VENV) -m ruff format --check
	$(VENV) -c "import importlinter.cli as cli; raise SystemExit(cli.lint_imports())"
	$(BIOME) check --error-on-warnings

format: setup-python setup-node
	$(VENV) -m ruff check --fix
	$(VENV) -m ruff format
	$(BIOME) check --write

typecheck: setup-python setup-node
	$(VENV) -m mypy
	$(TSC) --project .

fuzz: setup-python
	OMP_NUM_THREADS=1 $(VENV) -m gradsight_dev.fuzz

facts: setup-python
	$(VENV) -m gradsight_dev.facts
	$(VENV) -m gradsight_dev.traits

# Say which: TAG=v1.2.3.
TAG =
MIRROR =

release-version: setup-python
	@$(VENV) -m gradsight_dev.release version $(TAG)

# For every platform, unless TARGETS names one.  twine has an environment of its own: the tests need none of what it brings.
release-check: setup-python
	@test -d build/twine || $(VENV) -m venv build/twine
	@$$(.ci/setup which build/twine) -m pip install --quiet --disable-pip-version-check twine==7.0.0
	@rm -f build/*.vsix
	@targets='$(TARGETS)' && $(MAKE) vsix TARGETS="$${targets:-all}" PYTHON='$(PYTHON)' NODE='$(NODE)'
	@targets='$(TARGETS)' && $(VENV) -m gradsight_dev.release check --twine $$(.ci/setup which build/twine) \
	    --target "$${targets:-all}" build/*.vsix

release-mirror: setup-python
	@$(VENV) -m gradsight_dev.release mirror $(TAG) $(MIRROR)

# The tokens come from the environment.  `private` in package.json keeps the client off npm; neither of these looks at it.
publish-marketplace: setup-node
	@for file in build/*.vsix; do $(NODE) node_modules/@vscode/vsce/vsce publish --packagePath "$$file" || exit 1; done

publish-openvsx: setup-node
	@for file in build/*.vsix; do npx --yes ovsx@1.1.1 publish "$$file" || exit 1; done

licences: setup-python
	@$(VENV) -m gradsight_dev.licences

pins: setup-python
	$(VENV) -m gradsight_dev.pins

clean:
	rm -rf .venv node_modules dist build site artifacts .mypy_cache .ruff_cache .import_linter_cache .hypothesis .gradsight_cache

setup-python:
	@PYTHON='$(PYTHON)' .ci/setup python

setup-node:
	@NODE='$(NODE)' .ci/setup node
