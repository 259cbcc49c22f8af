# Sluice: `make` lists the commands. Everything is cached outside the checkout, in SLUICE_CACHE.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export SLUICE_CACHE ?= $(shell [ "$$(id -u)" = 0 ] && echo /var/cache/sluice || echo "$$HOME/.cache/sluice")
# Objects are found again from another checkout: CI's fresh clone compiles only what changed.
export CCACHE_DIR ?= $(SLUICE_CACHE)/ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
BUILD := build
PYTHON := $(SLUICE_CACHE)/venv/bin/python

.PHONY: help
help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: toolchain
toolchain: ## install what building needs (Debian packages, a Python environment in the cache)
	@toolchain/install.sh build
	@toolchain/python.sh

.PHONY: configure
configure: toolchain
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSLUICE_TESTS=OFF > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

.PHONY: build
build: configure ## compile all programs into build/
	@ninja -C $(BUILD)

.PHONY: bundle
bundle: configure ## the relocatable bundle of feeder, worker, cache and operator: build/bundle
	@worker-image/bundle.sh $(BUILD)

.PHONY: wheel
wheel: bundle ## for `pip install build/wheel/*.whl`: the Python package with feeder, worker and cache, no compiler needed
	@worker-image/wheel.sh $(BUILD)

.PHONY: try
try: configure ## fifteen seconds, no Kubernetes: our DataLoader beside PyTorch's on this machine
	@ninja -C $(BUILD) sluice-feeder
	@e2e/demo/try.sh $(BUILD)

.PHONY: demo
demo: ## a real local Kubernetes, three training jobs, fed by Sluice (KEEP=1 leaves it up; KUBECONFIG=... uses your cluster)
	@e2e/demo/demo.sh $(if $(filter command,$(word 1,$(origin KUBECONFIG))),--kubeconfig "$(KUBECONFIG)")

.PHONY: demo-down
demo-down: ## remove the demo's cluster and everything it made
	@e2e/cluster/cluster.sh down

.PHONY: test
test: ## all tests: unit, sanitizers, Python, end to end on a real cluster
	@tests/run.sh

.PHONY: test-versions
test-versions: toolchain ## the Kubernetes library on API servers of older and newer versions (VERSIONS="1.33.13 1.36.3"; builds each once)
	@toolchain/install.sh sanitizers cluster
	@tests/versions.py $(VERSIONS)

.PHONY: test-integrations
test-integrations: bundle ## Sluice beside the real Kueue and Prometheus operator, and its objects before kubeconform, on the real local Kubernetes (builds them once: minutes)
	@toolchain/install.sh cluster
	@e2e/cluster/build-binaries.sh && e2e/cluster/build-binaries.sh kueue prometheus-operator prometheus-config-reloader prometheus kubeconform
	@$(PYTHON) -m pytest -q -p no:cacheprovider e2e/scenarios/integrations/*.py

.PHONY: test-pythons
test-pythons: configure ## the client's tests on the oldest and newest Python and PyTorch (PYTHONS="3.10 3.13"; 10 GiB of packages once)
	@ninja -C $(BUILD) sluice-feeder sluice-worker sluice-cache sluice-pipeline-probe
	@tests/pythons.py $(PYTHONS)

.PHONY: arm64
arm64: toolchain ## bundle and wheel for arm64, compiled on this machine: build/arm64/bundle, build/arm64/wheel
	@worker-image/compile.sh arm64 build/arm64
	@worker-image/wheel.sh build/arm64

.PHONY: test-arm64
test-arm64: toolchain ## what is compiled for arm64, under an emulator, beside torchvision on this machine; a quarter of an hour
	@toolchain/install.sh arm64 && toolchain/arm64.sh
	@tests/arm64.py

.PHONY: check
check: ## style and consistency, in minutes: format, tidy, clang-tidy, headers, types of the client, chart, CRDs
	@tools/check.sh

.PHONY: build-times
build-times: toolchain ## CPU-seconds of compiling, by target, and the ten dearest files (SANITIZE=address TARGETS="sluice_kube_test")
	@toolchain/install.sh sanitizers
	@tools/build_times.py --sanitize "$(SANITIZE)" $(TARGETS)

.PHONY: bench-scheduler
bench-scheduler: build ## How long one decision takes, from a full snapshot, up to 10,000 jobs on 10,000 nodes
	@$(BUILD)/bench/scheduler/sluice-decision-bench bench/results/scheduler.json

.PHONY: bench-cache-policies
bench-cache-policies: build ## What a cache fetches that several jobs share, by policy: simulated, half a minute
	@$(BUILD)/bench/cache/sluice-cache-policies

.PHONY: bench-data-plane
bench-data-plane: build ## CPU-seconds per 1,000 images: native pipeline and whole local path against PyTorch, same run
	@bench/data-plane.sh $(BUILD)

.PHONY: bench-order
bench-order: build ## CPU-seconds per 1,000 images of transforms before the crop: torchvision, the program's order, the exact and the relaxed one; two minutes
	@folder=$$("$(SLUICE_CACHE)/venv/bin/python" e2e/datasets/photographs.py --count 60) && \
	  OMP_NUM_THREADS=1 PYTHONPATH=python "$(SLUICE_CACHE)/venv/bin/python" bench/data_plane/order_bench.py $(BUILD) "$$folder" bench/results/order.json

.PHONY: bench-epoch-cost
bench-epoch-cost: build ## What an epoch costs in money under Cachew's, Pecan's and Sluice's rules, of the figures of bench-order: simulated, a minute
	@$(PYTHON) bench/scheduler/epoch_cost.py $(BUILD) bench/results/epoch-cost.json

.PHONY: bench-loaders
bench-loaders: configure ## Sluice head to head with a dozen other loaders, a table and a plot; 45 minutes on a quiet machine, 5 GiB of packages once (ARGUMENTS="--rounds 1 --workloads photographs")
	@toolchain/install.sh loaders
	@ninja -C $(BUILD) sluice-feeder
	@bench/loaders.sh $(BUILD) $(ARGUMENTS)

.PHONY: bench-dlio
bench-dlio: configure ## MLPerf Storage's program DLIO, unmodified, with its own loader and with Sluice's as a plug-in; ten minutes on a quiet machine, 2 GiB of packages once (ARGUMENTS="--rounds 1 --workloads unet3d")
	@ninja -C $(BUILD) sluice-feeder
	@bench/dlio.sh $(BUILD) $(ARGUMENTS)

.PHONY: bench-scripts
bench-scripts: build ## the scripts of python/examples, unmodified, plain and under `sluice run`, from start to end (ARGUMENTS="--rounds 1 --only plain_loop")
	@bench/scripts.sh $(BUILD) $(ARGUMENTS)

.PHONY: bench-client
bench-client: build ## the begin of an epoch, memory, CPU-seconds of Python data, the trainer's own time, loaders in turn and data workers of any speed, beside their goals; seven minutes
	@OMP_NUM_THREADS=1 PYTHONPATH=python "$(SLUICE_CACHE)/venv/bin/python" bench/data_plane/client_bench.py $(BUILD)

.PHONY: soak-client
soak-client: build ## loaders made and dropped, data workers joining and leaving, at full rate: nothing held may grow (MINUTES=30)
	@OMP_NUM_THREADS=1 PYTHONPATH=python "$(SLUICE_CACHE)/venv/bin/python" bench/data_plane/client_soak.py $(BUILD) --minutes $(or $(MINUTES),30)

.PHONY: bench-estimator
bench-estimator: ## what the scheduler believes about jobs on a real cluster, against what was counted; ten minutes
	@bench/estimator/estimator_bench.py bench/results/estimator.json

.PHONY: bench-two-pods
bench-two-pods: ## a starved trainer of two pods beside one of one pod, and without Sluice from a third on, on a real cluster; ten minutes (ARGUMENTS=--kueue)
	@bench/two_pods/two_pods_bench.py bench/results/two-pods.json $(ARGUMENTS)

.PHONY: bench-kube
bench-kube: build ## watch, cache and lag of src/kube beside a client-go informer, on a cluster of its own (PODS=10000 SECONDS=30)
	@bench/kube.sh $(BUILD) $(or $(PODS),10000) $(or $(SECONDS),30) kube.json

.PHONY: soak-kube
soak-kube: build ## src/kube's watch path under updates for half an hour: its memory must not grow (MINUTES=30 RATE=100)
	@bench/kube.sh $(BUILD) $(or $(PODS),2000) 30 kube-soak.json --soak-minutes $(or $(MINUTES),30) --rate $(or $(RATE),100)

.PHONY: bench-memory
bench-memory: build ## what the operator holds for 10,000 workers on 1,250 nodes, kind by kind, without a cluster; a minute
	@$(BUILD)/bench/scale/sluice-memory-bench --out bench/results/memory.json

.PHONY: bench-scale
bench-scale: build ## 1,000 jobs with 10,000 workers on fake nodes, the operator beside a bare client (JOBS=1000 WORKERS=10)
	@bench/scale.sh $(BUILD) $(or $(JOBS),1000) $(or $(WORKERS),10)

.PHONY: fuzz
fuzz: toolchain ## libFuzzer on everything that src/cache, src/kube and src/pipeline parse, a minute each (FUZZ_SECONDS=60)
	@toolchain/install.sh sanitizers
	@tools/fuzz.sh explore $(or $(FUZZ_SECONDS),60)

.PHONY: soak
soak: build ## the control plane against faults in virtual time, as many seeds as fit (MINUTES=30); failures become scenario files
	@ninja -C $(BUILD) sluice-simulation
	@$(BUILD)/operator/fault_simulation/sluice-simulation --minutes $(or $(MINUTES),30) --first $(or $(FIRST),$(shell date +%s)) --save operator/fault_simulation/scenarios

.PHONY: sim-report
sim-report: build ## the scheduler against baselines and the optimum on P1-P8, in minutes (SLUICE_JOB_LISTS=folder: published job lists)
	@$(BUILD)/scheduler/simulator/sluice-sim catalogue --json bench/results/sim-report.json
