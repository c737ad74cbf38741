# make gate NODE_TYPE=sxm [EVIDENCE=folder] [TIER=quick] [PYTHON=/env/bin/python] [ARGS='--set gpu.count=4']
# make test
NODE_TYPE ?=
EVIDENCE  ?=
TIER      ?=
PYTHON    ?=
ARGS      ?=
PY        ?= python3
VENV      := .venv
BIN       := $(VENV)/bin
CHECK     := ../shared/tools/contract_check.py

# an NVIDIA device on the PCI bus (vendor 10de), seen without any tool
HAS_GPU := $(shell grep -lix 0x10de /sys/bus/pci/devices/*/vendor 2>/dev/null | head -n 1)
EXTRA   := $(if $(and $(HAS_GPU),$(if $(PYTHON)$(EVIDENCE),,yes)),[torch],)

.PHONY: gate test test-nodes test-parts lint types contract docs bench fuzz clean

gate: $(VENV)/.gate$(if $(EXTRA),-torch)
	@$(BIN)/python -m pytest checks/ --node-type "$(NODE_TYPE)" \
	  $(if $(EVIDENCE),--evidence="$(EVIDENCE)") $(if $(TIER),--tier "$(TIER)") \
	  $(if $(PYTHON),--python "$(PYTHON)") $(ARGS) || { status=$$?; \
	  echo; echo "make says 2 for any failure; pytest's own exit status was $$status (1 rejected, 10 incomplete, 11 busy, 4 usage)."; \
	  $(if $(HAS_GPU)$(EVIDENCE),,echo "No NVIDIA device is on this machine's bus. To try a node that does not exist:"; \
	  echo "  $(BIN)/nodeready simulate sxm --out /tmp/node && make gate NODE_TYPE=sxm EVIDENCE=/tmp/node";) exit $$status; }

# two halves of about the same length, side by side; the gate's own processes leave a second core idle
test: $(VENV)/.dev lint types
	@$(MAKE) --no-print-directory -j2 test-nodes test-parts
	$(if $(wildcard $(CHECK)),$(BIN)/python $(CHECK),@echo "contract check: not here ($(CHECK))")

test-nodes: $(VENV)/.dev
	$(BIN)/python -m pytest tests/laws tests/simulate tests/field_cases

test-parts: $(VENV)/.dev
	$(BIN)/python -m pytest tests/ --ignore=tests/laws --ignore=tests/simulate --ignore=tests/field_cases

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contract: $(VENV)/.dev
	$(BIN)/python $(CHECK)

docs: $(VENV)/.dev
	$(BIN)/python docs/make_coverage.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/quick_tier.py
	$(BIN)/python benchmarks/matmul.py
	$(BIN)/python benchmarks/ssh_fanout.py

fuzz: $(VENV)/.dev
	$(BIN)/python benchmarks/fuzz.py --seconds 600

$(BIN)/python:
	$(PY) -m venv $(VENV) || { echo "python3 has no venv module: install your distribution's python3-venv"; exit 1; }

$(VENV)/.gate: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.gate-torch: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[torch]'
	@touch $@ $(VENV)/.gate

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.gate

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
