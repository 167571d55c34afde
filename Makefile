# A fresh machine needs Python 3.11+, make and git. Every target installs what it needs, from the locks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
N ?= 50
SEED ?= 7
# These tell the tests which machine-dependent suites may not skip.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help install run test check format unit lint

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

$(BIN)/uv: scripts/requirements-uv.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r scripts/requirements-uv.txt
	@touch $@

# What running needs; the stamp is older than a changed lock.
$(VENV)/run: $(BIN)/uv requirements-run.txt layers/core/pyproject.toml
	$(BIN)/uv pip install -q -p $(BIN)/python --compile-bytecode --require-hashes -r requirements-run.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --no-deps --no-build-isolation -e layers/core
	@touch $@

$(VENV)/dev: $(BIN)/uv requirements.txt layers/core/pyproject.toml
	$(BIN)/uv pip install -q -p $(BIN)/python --compile-bytecode --require-hashes -r requirements.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --no-deps --no-build-isolation -e layers/core
	@touch $@ $(VENV)/run

install: $(VENV)/dev ## .venv with everything for development, from the locks

run: $(VENV)/run ## the process people run: page, API, channels
	$(BIN)/instar serve

format: $(VENV)/dev ## rewrite the code's layout
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python scripts/check_sizes.py

unit: $(VENV)/dev
	$(PYTEST) -q tests/unit

check: lint unit ## formatting, lint, imports, types, sizes, unit tests: under two minutes

test: check ## check and every suite that needs no JVM, emulator or browser
	$(PYTEST) -q -m "not opensearch and not cloud and not browser and not real_model" tests/contracts tests/functions tests/flows tests/template

# --- suites that need more than Python -----------------------------------------------------------
.PHONY: layers-check opensearch-test cloud-test browser-test cloud cloud-url cloud-key cloud-down events
.PHONY: deploy deploy-check kill-test lock

layers-check: $(VENV)/dev ## build the arm64 / Python 3.13 layers and check every shared object
	$(BIN)/python scripts/check_layers.py

opensearch-test: $(VENV)/dev ## the index contract and recall on a real OpenSearch node (needs a JDK 17 and Maven)
	OPENSEARCH_URL="$$(scripts/opensearch/start --port 19210)" && export OPENSEARCH_URL && \
	  { $(PYTEST) -q tests/opensearch tests/contracts/test_search_index.py; result=$$?; \
	    scripts/opensearch/start --stop --port 19210; exit $$result; }

cloud-test: $(VENV)/dev ## the stack in the local cloud, driven over the wire (needs a JDK 17, Maven and Go)
	$(PYTEST) -q tests/cloud

browser-test: $(VENV)/dev ## the page in Chromium
	scripts/browser
	$(PYTEST) -q tests/browser

cloud: $(VENV)/dev ## the stack in the local cloud: built, deployed, with a real OpenSearch node
	$(BIN)/python scripts/cloud/cloud.py up

cloud-url: ## its address
	@$(BIN)/python scripts/cloud/cloud.py url

cloud-key: ## its owner key
	@$(BIN)/python scripts/cloud/cloud.py key

cloud-down: ## stop it
	$(BIN)/python scripts/cloud/cloud.py down

events: $(VENV)/dev ## run every file of events/ through its function, as sam local invoke does
	$(BIN)/python scripts/cloud/invoke.py --all events/

kill-test: $(VENV)/dev ## kill -9 at random moments, N times; nothing may be lost
	$(BIN)/python scripts/kill_test.py --runs $(N) --seed $(SEED)

lock: $(BIN)/uv ## compile the lock files anew
	UV=$(BIN)/uv scripts/lock

deploy-check: $(VENV)/dev ## before AWS: template, policies, quotas, model access, monthly price
	$(BIN)/python scripts/deploy.py check

deploy: $(VENV)/dev ## into your AWS account; shows the price and asks (needs the sam command)
	$(BIN)/python scripts/deploy.py deploy
