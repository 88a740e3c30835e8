# Everything a developer needs, one target each. `make help` reads the texts behind the ##.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# What is built for Kubernetes: its version, and where images go; without a registry they stay here.
VERSION  ?= $(shell git describe --tags --always --dirty)
REGISTRY ?=
IMAGES   ?= broker operator console spark
DOCKER   ?= docker
HELM     ?= helm
KUBECTL  ?= kubectl
image     = $(if $(REGISTRY),$(REGISTRY)/)kafscale-$(1)

# The pages of the console. Node is that of this machine, or else the one among the packages of Python.
PAGES   := src/kafscale/console/static/index.html
MODULES := web/node_modules/.ready
NPM      = PATH="$$PATH:$(abspath $(BIN))" npm --prefix web

.DEFAULT_GOAL := help
.PHONY: help setup run web test test-web test-integration test-k8s check lint audit format bench bench-spark chaos docs screenshots generate lock \
  build docker docker-push helm-package deploy-crds deploy clean

help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with kafscale and all its extras, exactly as locked.

# The lock pins every package by hash; the project itself is installed in place, so edits take effect at once.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Kafscale needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

run: setup ## Start a broker and the console on the embedded default.
	@$(MAKE) --no-print-directory web || echo "the pages of the console could not be built: only its API is served"
	$(BIN)/kafscale up

web: $(PAGES) ## Build the pages of the console into the package.

$(PAGES): $(MODULES) $(shell find web -path web/node_modules -prune -o -type f -print)
	$(NPM) run --silent typecheck
	$(NPM) run --silent build -- --logLevel warn
	@touch $@

$(MODULES): web/package-lock.json | setup
	$(NPM) ci --silent --no-audit --no-fund
	@touch $@

# Brokers, clients and faults of many tests share the cores: what fails in that crowd has to pass when it is run by itself.
BY_ITSELF := --last-failed --last-failed-no-failures none
PLAIN := -m "not bench and not spark and not kubernetes"
SPARK := -p no:xdist -m "spark and not bench" tests/e2e/spark

test: setup web test-web ## Run all tests.
	$(BIN)/pytest -n auto --dist worksteal $(PLAIN) || $(BIN)/pytest -p no:xdist $(PLAIN) $(BY_ITSELF)
	$(BIN)/pytest $(SPARK) || $(BIN)/pytest $(SPARK) $(BY_ITSELF)

test-web: $(MODULES) ## Run the tests of the console's pages.
	$(NPM) test --silent

test-integration: setup ## Run the tests that have real services beside them.
	$(BIN)/pytest -n auto --dist worksteal $(PLAIN) tests/integration

IN_ROOM := PYTHONPATH=tests $(BIN)/python -m services.kubernetes.namespaces $(BIN)/pytest -p no:xdist -m kubernetes

# What is built from source comes first: there is no network where the tests run.
test-k8s: setup ## Run the tests on Kubernetes, in a room cut off from this machine; K8S_OPTIONS go to pytest.
	PYTHONPATH=tests $(BIN)/python -m services.kubernetes.binaries
	$(IN_ROOM) $(K8S_OPTIONS) tests/kubernetes || $(IN_ROOM) $(K8S_OPTIONS) $(BY_ITSELF) tests/kubernetes

check: setup ## Check format, lint, types, the floors of the house, its tidiness and what it depends on.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet -p no:randomly tests/test_architecture.py
	@$(MAKE) --no-print-directory audit

lint: check ## The same as check.

# Where the index cannot be asked, nothing is found out: that is said, and no reason to fail.
audit: setup ## Look for known vulnerabilities in what is locked.
	@if $(BIN)/pip-audit --requirement requirements.lock --disable-pip --require-hashes --timeout 5 --progress-spinner off > $(VENV)/audit 2>&1; \
	then echo "no known vulnerabilities in $$(grep -c '^[a-z].*==' requirements.lock) packages; $$(grep -c 'could not be audited' $(VENV)/audit) could not be looked up"; \
	elif grep -q 'known vulnerabilit' $(VENV)/audit; then cat $(VENV)/audit; exit 1; \
	else echo "vulnerabilities could not be looked up: $$(tail -n 1 $(VENV)/audit)"; fi

format: setup ## Rewrite the code in the house's format.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## Measure; prints tables and keeps the figures as JSON in .bench/.
	$(BIN)/python -m pytest -m "bench and not spark" -p no:randomly -p no:xdist --quiet -s tests/bench

bench-spark: setup ## Measure the pipeline on Spark beside Spark's own Kafka source; BENCH_OPTIONS go to pytest.
	$(BIN)/python -m pytest -m bench -p no:randomly -p no:xdist --quiet -s $(BENCH_OPTIONS) \
	  tests/bench/test_spark_decoder.py tests/bench/test_spark_planning.py \
	  tests/bench/test_spark_reading.py tests/bench/test_spark_freshness.py

chaos: setup ## Trouble a cluster for CHAOS_SECONDS, from CHAOS_SEED on, and judge what clients saw.
	PYTHONPATH=tests $(BIN)/python -m chaos $(CHAOS_OPTIONS) \
	  $(if $(CHAOS_SECONDS),--seconds $(CHAOS_SECONDS)) $(if $(CHAOS_SEED),--seed $(CHAOS_SEED))

docs: setup ## Write the generated pages of docs/ again.
	$(BIN)/kafscale docs generate

screenshots: setup web ## Take the pictures of the console in docs/images/ anew.
	PYTHONPATH=tests $(BIN)/python -m services.screenshots

generate: setup ## Write what is made of proto/, operator/spec and console/contract again.
	$(BIN)/python -m grpc_tools.protoc --proto_path=kafscale/metadata/_generated=proto/metadata \
	  --python_out=src --pyi_out=src proto/metadata/metadata.proto
	$(BIN)/python -m grpc_tools.protoc --proto_path=kafscale/metadata/_generated=proto/etcd \
	  --python_out=src --pyi_out=src proto/etcd/rpc.proto
	$(BIN)/python -m grpc_tools.protoc --proto_path=kafscale/control_plane/_generated=proto/control \
	  --python_out=src --pyi_out=src proto/control/broker.proto
	$(BIN)/python -m kafscale.operator.crd \
	  --definitions config/crd/bases deploy/helm/kafscale/crds --schemas api/v1alpha1
	$(BIN)/python -m kafscale.console.schema.typescript > web/src/api/contract.ts

lock: ## Choose the newest allowed versions of all dependencies and write requirements.lock.
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

build: setup web ## Build the wheel and the source distribution into dist/.
	$(BIN)/uv build --quiet --out-dir dist

# Defaults of the operator, and of config/, call the newest images here `latest`; charts name versions.
docker: web ## Build the images of IMAGES, tagged VERSION; PYTHON_IMAGE and ETCD_IMAGE are what they are made of.
	for image in $(IMAGES); do \
	  $(DOCKER) build --file deploy/docker/$$image.Dockerfile \
	    --tag $(call image,$$image):$(VERSION) --tag $(call image,$$image):latest \
	    --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) \
	    $(if $(PYTHON_IMAGE),--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE)) \
	    $(if $(ETCD_IMAGE),--build-arg ETCD_IMAGE=$(ETCD_IMAGE)) . || exit 1; \
	done

docker-push: docker ## Build the images, and push them to REGISTRY.
	for image in $(IMAGES); do $(DOCKER) push $(call image,$$image):$(VERSION) || exit 1; done

helm-package: ## Pack the chart into dist/, for the images of VERSION.
	$(HELM) package deploy/helm/kafscale --destination dist --app-version $(VERSION)

deploy-crds: ## Tell Kubernetes of KafscaleClusters and KafscaleTopics.
	$(KUBECTL) apply --server-side -f config/crd/bases/

deploy: deploy-crds ## Install or upgrade the operator with the images of VERSION; HELM_OPTIONS go to Helm.
	$(HELM) upgrade --install kafscale deploy/helm/kafscale --namespace kafscale --create-namespace \
	  --set broker.image.repository=$(call image,broker) --set broker.image.tag=$(VERSION) \
	  --set operator.image.repository=$(call image,operator) --set operator.image.tag=$(VERSION) \
	  --set console.image.repository=$(call image,console) --set console.image.tag=$(VERSION) $(HELM_OPTIONS)

clean: ## Remove what the other targets made.
	rm -rf $(VENV) web/node_modules $(dir $(PAGES)) dist .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
