# A fresh machine needs gcc, g++, make and Python 3.10 or later with pip and venv; the rest comes by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := setup.py pyproject.toml $(wildcard csrc/* csrc/*/* kernels/*/*)
FORMATTED := $(wildcard examples/*.c* recipe/*.h tests/c/fuzz.c tests/c/wrong.c csrc/*.[ch] csrc/*/*.[ch] kernels/*/*.* gpureduce/custom/*.[ch])
STUBS := __init__.pyi signatures.py arithmetic_signatures.py
SANITIZERS := address,undefined
SANITIZED ?= tests
CUDA_TOOLS := memcheck racecheck synccheck initcheck
GPU_RECORD := build/gpu

ARCHS ?= 75 80 86 89 90 100 120
PACK_NVRTC := build/nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.12

.PHONY: run test lint stubs bench bench-record example install pack docs wheel sdist-test sanitize gpu-test gpu-bench clean

run: $(VENV)/demo
	$(BIN)/python -m gpureduce demo --picture build/land.png

# What looks at memory that all share goes first: the last line is then of the run that has the tests.
# A file's tests by one process: they share what is slow to make. The long ones first, or at the end
# one process has such a file left and the others have nothing.
LONG := device_code operators_fibers driver axes law tiles_fibers bits house devices operators_device \
  trees_fibers oracle device_code_on_host threads fibers
LONG_FILES := $(LONG:%=tests/test_%.py)
test: $(VENV)/test
	$(BIN)/python -m pytest -m alone $$(grep -l mark.alone tests/test_*.py)
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder \
	  -m "not alone" $(LONG_FILES) $(filter-out $(LONG_FILES),$(wildcard tests/test_*.py))

lint: $(VENV)/lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(FORMATTED)
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest gpureduce
	for file in $(STUBS); do $(BIN)/python -m gpureduce stubs $$file | diff gpureduce/$$file - || exit 1; done

stubs: $(VENV)/lint
	for file in $(STUBS); do $(BIN)/python -m gpureduce stubs $$file > build/stubs && cp build/stubs gpureduce/$$file; done

# Beside NumPy, into build/bench; bench-record writes the table that is committed.
bench: $(VENV)/test
	$(BIN)/python benchmarks/cpu.py

bench-record: $(VENV)/test
	$(BIN)/python benchmarks/cpu.py --record

# The kernels of a release, a file an architecture in gpureduce/packs: by all cores, and those alone that
# have changed. Of CUDA 12, so that the drivers of CUDA 12 take them.
pack: $(VENV)/demo $(PACK_NVRTC)
	GPUREDUCE_NVRTC=$(CURDIR)/$(PACK_NVRTC) XDG_CACHE_HOME=$(CURDIR)/build/kernels \
	  $(BIN)/python -m gpureduce cache pack --arch "$(ARCHS)"

$(PACK_NVRTC): | $(VENV)/demo
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --target build/nvrtc \
	  nvidia-cuda-nvrtc-cu12==12.9.86

# build/sum: the C API by a program without Python. The flags name the library and what it needs.
example: $(VENV)/test
	gcc -std=gnu11 -O2 -Wall -Wextra examples/sum.c @build/objects/libgpureduce.flags -o build/sum

# The C library: header, static and shared library, and what pkg-config reads.
PREFIX ?= /usr/local
SONAME = $(notdir $(wildcard build/objects/libgpureduce.so.*))
install: $(VENV)/demo
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 csrc/gpureduce.h $(DESTDIR)$(PREFIX)/include
	install -m 644 build/objects/libgpureduce.a $(DESTDIR)$(PREFIX)/lib
	install -m 755 build/objects/$(SONAME) $(DESTDIR)$(PREFIX)/lib
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libgpureduce.so
	sed 's|@prefix@|$(PREFIX)|' build/objects/gpureduce.pc > $(DESTDIR)$(PREFIX)/lib/pkgconfig/gpureduce.pc

# Run from its own directory, so that the package that is found there is the sanitized one.
sanitize: $(VENV)/test
	GPUREDUCE_SANITIZE=$(SANITIZERS) \
	  $(BIN)/python -m pip install -v --no-deps --upgrade --target build/sanitize .
	cd build/sanitize && PYTHONPATH=$(CURDIR)/build/sanitize ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  ../../$(BIN)/python -m pytest -p no:cacheprovider $(SANITIZED:%=../../%)

# build/wheel: for each Python built, repaired, checked, and tested where it is installed.
PYTHONS ?= $(PYTHON)
WHEEL_TESTS ?= tests
wheel: $(VENV)/wheel
	$(BIN)/python recipe/wheel.py --pythons "$(PYTHONS)" --tests $(WHEEL_TESTS)

sdist-test: $(VENV)/wheel
	$(BIN)/python recipe/wheel.py --sdist --pythons "$(PYTHONS)" --tests $(WHEEL_TESTS)

# The documentation as web pages in build/docs: warnings are errors, notebooks are run.
docs: $(VENV)/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs build/docs

# One set-up for each extra of pyproject.toml; objects that are up to date are kept.
$(VENV)/%: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -v --editable '.[$*]'
	touch $@

# Without network, virtual environment and pip: python3 brings what the tests use. A process for each
# file, once for what needs a GPU and once for what does not, the long ones first; then what looks at
# memory that all of them share.
TESTS := $(patsubst tests/test_%.py,%,$(wildcard tests/test_*.py))
FIRST := gpu-gpu gpu-axes gpu-operators_gpu host-operators_kept host-operators_fibers host-axes host-partials_words
# The fake driver is for machines that have none; the record is made by the run.
RUNS := $(FIRST) $(filter-out $(FIRST) host-driver host-gpu_record,$(TESTS:%=gpu-%) $(TESTS:%=host-%))
PYTEST := timeout 1800 python3 -m pytest -q -p no:cacheprovider
NONE_IS_FINE := || test $$? = 5

# What is tested and timed is the pack, without a compiler.
GPU_ARCH := 90
GPU_PACK := python3 setup.py -q build_ext --inplace && \
  XDG_CACHE_HOME=$(CURDIR)/build/kernels python3 -m gpureduce cache pack --arch $(GPU_ARCH)

gpu-test:
	$(GPU_PACK)
	rm -rf $(GPU_RECORD) && mkdir -p $(GPU_RECORD)
	GPUREDUCE_NVRTC=none $(MAKE) -s -k -j $$(nproc) $(RUNS:%=$(GPU_RECORD)/%.xml) $(CUDA_TOOLS:%=$(GPU_RECORD)/%.log) \
	  || touch $(GPU_RECORD)/failed
	GPUREDUCE_NVRTC=none $(PYTEST) -m "gpu and alone" --junitxml=$(GPU_RECORD)/alone.xml || touch $(GPU_RECORD)/failed
	grep -hE "^(FAILED|ERROR)|[0-9] passed" $(GPU_RECORD)/*.out
	python3 tests/gpu_record.py --write $(GPU_RECORD) && test ! -e $(GPU_RECORD)/failed

$(GPU_RECORD)/gpu-%.xml:
	$(PYTEST) -m "gpu and not alone" --junitxml=$@ tests/test_$*.py > $(@:xml=out) 2>&1 $(NONE_IS_FINE)
# What is compiled when it is asked for: examples, and operators of the user.
$(GPU_RECORD)/host-%.xml $(GPU_RECORD)/gpu-example.xml $(GPU_RECORD)/gpu-operators_gpu.xml: export GPUREDUCE_NVRTC =
$(GPU_RECORD)/gpu-gpu.xml $(GPU_RECORD)/gpu-operators_gpu.xml: PYTEST += -n 3 -p no:benchmark
$(GPU_RECORD)/host-%.xml:
	$(PYTEST) -m "not gpu" --junitxml=$@ tests/test_$*.py > $(@:xml=out) 2>&1 $(NONE_IS_FINE)
$(GPU_RECORD)/%.log:
	compute-sanitizer --tool $* --error-exitcode 1 --log-file $@ $(PYTEST) -m sanitized \
	  > $(@:log=out) 2>&1

gpu-bench: export GPUREDUCE_NVRTC = none
gpu-bench:
	GPUREDUCE_NVRTC= && $(GPU_PACK)
	PYTHONPATH=. timeout 900 python3 benchmarks/gpu.py
	PYTHONPATH=. timeout 900 python3 benchmarks/gpu_axes.py
	PYTHONPATH=. python3 benchmarks/sweep.py gpu --seconds 120 --write benchmarks/results/sweep_gpu.md
	PYTHONPATH=. python3 -m gpureduce ladder --json benchmarks/results/ladder.json \
	  --markdown benchmarks/results/ladder.md --plot benchmarks/results/ladder.png
	PYTHONPATH=. python3 benchmarks/work_queue.py

clean:
	rm -rf build dist $(VENV) *.egg-info gpureduce/*.so .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
