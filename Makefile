# Kasuri: `make help` lists the targets. Everything is made inside this folder: target/ (cargo), .venv/ (Python), out/ (results).

PYTHON    ?= python3
VENV      := .venv
PY        := $(VENV)/bin/python
KASURI    := $(VENV)/bin/kasuri
TARGET    := $(or $(CARGO_TARGET_DIR),target)
EXTENSION := python/kasuri/_kasuri.abi3.so
OUT       ?= out

# Neither packages nor settings of the user's own site enter the virtual environment.
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH PYTHONHOME
say = @echo "kasuri: $(1)"

.DELETE_ON_ERROR:
.PHONY: help map build mpi demo test test-rust test-python lint format verify bench timings docs fuzz clean rust

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

map:  ## an index of all folders [IN=FOLDER: of the files in it]
	@$(PYTHON) tools/map.py $(IN)

# --- the virtual environment -----------------------------------------------------------------------------------------------------
$(VENV)/.made:
	$(call say,looking for Python; the C compiler and cargo)
	@tools/system-packages.sh $(PYTHON)
	$(call say,making the virtual environment $(VENV))
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# The packages `kasuri` and `kasuri_papers`, as they lie here.
$(VENV)/.paths: Makefile $(VENV)/.made
	@$(PY) -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "kasuri.pth").write_text("$(CURDIR)/python\n$(CURDIR)/papers\n")'
	@touch $@

# Each stamp holds the requirements that were installed, so that only a change of their text installs anew.
$(VENV)/.%: requirements/%.txt requirements/runtime.txt $(VENV)/.paths
	@if cat requirements/runtime.txt $< | cmp -s - $@; then touch $@; else \
	  echo "kasuri: installing the Python packages of requirements/$*.txt"; \
	  $(PY) -m pip install --quiet --no-deps -r $< && cat requirements/runtime.txt $< > $@; \
	fi

# --- building --------------------------------------------------------------------------------------------------------------------
build: rust $(VENV)/.runtime  ## the command .venv/bin/kasuri and the Python packages, ready to use
	$(call say,built $(KASURI) ($$($(KASURI) --version)))

# One optimised profile with assertions serves command, extension and tests, so nothing is compiled twice. That asks for all packages and
# for examples, too: else cargo chooses other features of the dependencies than for tests, and compiles everything for each choice.
rust: $(VENV)/.made
	$(call say,compiling the command and the Python extension (cargo; the first time takes minutes))
	@cargo build --locked --workspace --lib --bins --examples
	@cmp -s $(TARGET)/debug/kasuri $(KASURI) || install -m 755 $(TARGET)/debug/kasuri $(KASURI)
	@cmp -s $(TARGET)/debug/lib_kasuri.so $(EXTENSION) || install -m 755 $(TARGET)/debug/lib_kasuri.so $(EXTENSION)

# The Makefile in mpi/ builds for one MPI library alone, without installing anything: make -C mpi MPI=mpich
mpi:  ## the library that runs schedules in MPI programs, for Open MPI and MPICH: mpi/build
	$(call say,building the MPI library and its benchmark (mpi/build); Open MPI and MPICH and FFTW)
	@tools/mpi-packages.sh
	@$(MAKE) --silent -C mpi

# --- using it --------------------------------------------------------------------------------------------------------------------
demo: build  ## runs the examples and writes their reports to out/demo
	$(call say,running the examples; results are kept in $(OUT)/demo: a second run computes only what is missing)
	@$(PY) examples/demo.py --kasuri $(KASURI) --out $(OUT)/demo

# One target for each comparison: `make verify-booksim` makes one alone. All are made, whatever some find; those that failed are named
# at the end.
VERIFICATIONS := schedules gate matrix memory contributing threads mpi slurm executors mutations experiments stores pack interruptions \
                 sameness convergence fidelity arbitrated congestion interference cenju4 booksim readers writers astra fabrics uec ib tenstorrent \
                 docs papers
.PHONY: $(VERIFICATIONS:%=verify-%)

verify: build mpi $(VENV)/.test  ## compares the levels of fidelity, BookSim 2, MPI libraries, executors and published figures [REFERENCE=DIR: every row there, not only the extract]
	@failed=; \
	  for name in $(VERIFICATIONS); do $(MAKE) --no-print-directory verify-$$name || failed="$$failed verify-$$name"; done; \
	  if [ -n "$$failed" ]; then echo "kasuri: FAILED:$$failed"; exit 1; fi
	$(call say,all $(words $(VERIFICATIONS)) verifications passed)

verify-schedules: build
	$(call say,searching phases for a thousand terminals)
	@cargo test --locked --quiet --workspace --test suite -- --ignored general_schedule::

verify-gate: build
	$(call say,whether check and run agree on two thousand experiments)
	@PROPTEST_CASES=2000 cargo test --locked --quiet --workspace --test suite gate::

verify-matrix: build
	$(call say,every two features on every engine)
	@KASURI_MATRIX=all cargo test --locked --quiet --workspace --test suite matrix::

verify-memory: build
	$(call say,what runs take of memory, against what was promised)
	@KASURI_MEMORY=all cargo test --locked --quiet --workspace --test run_memory

verify-contributing: build $(VENV)/.test
	$(call say,the additions of docs/how-to/extend; compiled and tested)
	@KASURI_CONTRIBUTING=all $(PY) -m pytest tests/test_contributing.py

verify-threads: $(VENV)/.made
	$(call say,data races and lost wake-ups: Loom; Miri; ThreadSanitizer (minutes))
	@TARGET=$(TARGET) validation/threads/check.sh

verify-mpi: build mpi $(VENV)/.test
	$(call say,comparing a thousand random all-to-alls with those of Open MPI and MPICH)
	@KASURI_MPI_CASES=1000 $(PY) -m pytest tests/test_mpi.py -k random

verify-slurm: build $(VENV)/.test
	$(call say,sweeps on a Slurm of two nodes on this machine)
	@$(PY) -m pytest tests/slurm/test_slurm.py

verify-writers: build $(VENV)/.test
	$(call say,300 drawn networks and fabrics written and read back; by Kasuri, networkx and slurmctld)
	@command -v slurmctld >/dev/null || tools/debian-packages.sh slurmctld slurm-client
	@KASURI_WRITERS=300 $(PY) -m pytest tests/test_writers.py

verify-executors: build $(VENV)/.test
	$(call say,what executors add to the runs themselves)
	@$(PY) validation/executors/overhead.py --kasuri $(KASURI)

verify-mutations: build
	$(call say,9000 damaged experiment files)
	@$(PY) validation/campaigns/mutations.py --kasuri $(KASURI)

verify-experiments: build
	$(call say,1100 drawn experiments)
	@$(PY) validation/campaigns/experiments.py --kasuri $(KASURI)

verify-stores: build
	$(call say,2000 damaged folders of results)
	@$(PY) validation/campaigns/stores.py --kasuri $(KASURI)

verify-pack: build
	$(call say,300 drawn experiments, packed and run elsewhere)
	@$(PY) validation/campaigns/packed.py --kasuri $(KASURI)

verify-interruptions: build $(VENV)/.test
	$(call say,100 interrupted sweeps, and 40 whose runs have two threads each)
	@$(PY) validation/campaigns/interruptions.py --kasuri $(KASURI)
	@$(PY) validation/campaigns/interruptions.py --kasuri $(KASURI) --threads 2 --count 40 --first 1001

verify-sameness: build
	$(call say,3700 experiments; refusals; commands and instructions against what is kept; in three tiles; on two threads)
	@command -v valgrind >/dev/null || tools/debian-packages.sh valgrind
	@$(PY) validation/sameness/compare.py --kasuri $(KASURI)
	@$(PY) validation/sameness/compare.py --kasuri $(KASURI) --tiles 3
	@$(PY) validation/sameness/compare.py --kasuri $(KASURI) --threads 2

verify-convergence: build
	$(call say,how often confidence intervals hold the true mean)
	@$(PY) validation/convergence/coverage.py --kasuri $(KASURI)

verify-fidelity: build
	$(call say,comparing levels of fidelity: flows with flits)
	@$(PY) validation/fidelity/compare.py --kasuri $(KASURI)

verify-arbitrated: build
	$(call say,comparing arbitrated flows with flits, message by message)
	@$(PY) validation/arbitrated/compare.py --kasuri $(KASURI)

verify-congestion: build
	$(call say,adaptive ways against blind ones over short and long channels)
	@$(PY) validation/congestion/compare.py --kasuri $(KASURI)

verify-interference: build
	$(call say,what users of one machine take from each other)
	@$(PY) validation/interference/study.py --kasuri $(KASURI)

verify-cenju4: build
	$(call say,which network the study of the Cenju-4's figure 9 has)
	@$(PY) validation/cenju4/slots.py

verify-booksim: build
	$(call say,comparing with BookSim 2 ($(or $(REFERENCE),the extract in validation/booksim)))
	@$(PY) validation/booksim/compare.py --kasuri $(KASURI) $(if $(REFERENCE),--reference $(REFERENCE))

verify-astra: build
	$(call say,comparing with ASTRA-sim and checking algorithms of MSCCL ($(or $(REFERENCE),the extracts in tests/data)))
	@status=0; \
	  $(PY) validation/astra/compare.py --kasuri $(KASURI) $(if $(REFERENCE),--reference $(REFERENCE)) || status=1; \
	  $(PY) validation/astra/differences.py --kasuri $(KASURI) || status=1; \
	  exit $$status

verify-readers: build
	$(call say,reading the files of other programs as they are ($(or $(REFERENCE),the extracts in tests/data)))
	@$(PY) validation/readers/compare.py --kasuri $(KASURI) $(if $(REFERENCE),--reference $(REFERENCE))
	@$(if $(REPOSITORIES),$(PY) -W ignore validation/readers/campaign.py --kasuri $(KASURI) --repositories $(REPOSITORIES) --clone)

verify-uec: build
	$(call say,comparing with UEC htsim ($(or $(REFERENCE),the extract in tests/data)))
	@$(PY) validation/uec/compare.py --kasuri $(KASURI) $(if $(REFERENCE),--reference $(REFERENCE))

verify-fabrics: build
	$(call say,networks of fabrics against a table of counts, distances and digests; 29 verdicts on virtual channels)
	@$(PY) validation/fabrics/compare.py --kasuri $(KASURI)
	@cargo test --locked --quiet --workspace --test suite fabrics_deadlock::

verify-ib: build
	$(call say,following OpenSM's tables route by route and comparing with ibdmchk ($(or $(REFERENCE),the extract in tests/data)))
	@$(PY) validation/ib/compare.py --kasuri $(KASURI) $(if $(REFERENCE),--reference $(REFERENCE))

verify-tenstorrent: build
	$(call say,importing the machines of Tenstorrent; comparing with their tests and measurements ($(or $(REFERENCE),the extract in tests/data)))
	@$(PY) validation/tenstorrent/compare.py --kasuri $(KASURI) $(if $(REFERENCE),--reference $(REFERENCE))

verify-docs: build $(VENV)/.test
	$(call say,running every command of the documentation and drawing every picture; minutes)
	@KASURI_ALL_DOCS=1 $(PY) -m pytest -n 2 --dist worksteal tests/test_docs.py tests/test_pictures.py

verify-papers: build
	$(call say,making published figures again (kasuri reproduce); minutes; what $(OUT)/reproduce holds is not computed again)
	@$(KASURI) reproduce --strict --out $(OUT)/reproduce mfs mlfm prediction-router virtual-network cenju4

timings: build  ## measures what an edit costs until the program and the tests are built again [COLD=1: and a build from nothing]
	@$(PY) tools/timings.py $(if $(COLD),--cold)

BENCH := $(PY) benches/record.py $(OUT)/bench.md

bench: build  ## measures speed and memory [BOOKSIM=/path/to/booksim, SIMGRID=1: with the ratios to them]
	$(call say,compiling the command for speed (profile release with link-time optimisation: takes minutes))
	@cargo build --locked --release --package kasuri
	@$(if $(SIMGRID),cargo build --locked --release --package kasuri --example list_messages && tools/simgrid.sh $(TARGET)/simgrid/batch)
	@rm -f $(OUT)/bench.md
	@status=0; \
	  $(BENCH) benches/speed.py --kasuri $(TARGET)/release/kasuri $(if $(BOOKSIM),--booksim $(BOOKSIM)) || status=1; \
	  $(if $(BOOKSIM),$(BENCH) benches/booksim.py --kasuri $(TARGET)/release/kasuri --booksim $(BOOKSIM) || status=1;) \
	  $(BENCH) benches/prediction.py --kasuri $(TARGET)/release/kasuri || status=1; \
	  $(BENCH) benches/threads.py --kasuri $(TARGET)/release/kasuri || status=1; \
	  $(BENCH) benches/astra.py --kasuri $(TARGET)/release/kasuri || status=1; \
	  $(BENCH) benches/uec.py --kasuri $(TARGET)/release/kasuri || status=1; \
	  $(BENCH) benches/fabric.py --kasuri $(TARGET)/release/kasuri || status=1; \
	  $(BENCH) benches/flow.py --kasuri $(TARGET)/release/kasuri \
	    $(if $(SIMGRID),--simgrid $(TARGET)/simgrid/batch --messages $(TARGET)/release/examples/list_messages) || status=1; \
	  echo "kasuri: these tables are in $(OUT)/bench.md"; \
	  exit $$status

docs: build $(VENV)/.docs  ## the documentation, as web pages in docs/_build/html
	$(call say,building the documentation (Sphinx))
	@$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(call say,built docs/_build/html/index.html)

# --- testing ---------------------------------------------------------------------------------------------------------------------
test: test-rust test-python lint  ## all tests
	$(call say,all tests passed)

# The same random cases every time, so that a failure tells of the change at hand. Plain `cargo test` draws others.
test-rust: $(VENV)/.made
	$(call say,Rust tests (cargo test))
	@PROPTEST_RNG_SEED=1 cargo test --locked --workspace --quiet

test-python: test-rust build mpi $(VENV)/.test
	$(call say,Python tests (pytest))
	@$(PY) -m pytest -n 2 --dist worksteal

# Crates outside the workspace.
FORMAT_APART := rustfmt --edition 2024 fuzz/fuzz_targets/*.rs validation/threads/src/main.rs

lint: $(VENV)/.test  ## checks formatting, style and types
	$(call say,style (cargo fmt; ruff; mypy))
	@if cargo fmt --version >/dev/null 2>&1; then cargo fmt --all --check && $(FORMAT_APART) --check; \
	else echo "kasuri: rustfmt is not installed: left out"; fi
	@$(PY) -m ruff format --check --quiet --no-cache python papers tests examples docs validation benches tools
	@$(PY) -m ruff check --quiet --no-cache python papers tests examples docs validation benches tools
	@$(PY) -m mypy --cache-dir $(VENV)/.mypy_cache --no-error-summary

format: $(VENV)/.test  ## formats all Rust and Python files
	@cargo fmt --all && $(FORMAT_APART)
	@$(PY) -m ruff format --quiet --no-cache python papers tests examples docs validation benches tools

fuzz:  ## fuzzes every parser for FUZZ_SECONDS each (needs a nightly compiler and cargo-fuzz)
	@if cargo +nightly fuzz --version >/dev/null 2>&1; then \
	  for target in $$(cargo +nightly fuzz list); do \
	    echo "kasuri: fuzzing $$target"; \
	    cargo +nightly fuzz run $$target -- -max_total_time=$(or $(FUZZ_SECONDS),60) || exit 1; \
	  done; \
	else \
	  echo "kasuri: no nightly compiler with cargo-fuzz here; \`make test\` runs the same entry points on stored and random inputs"; \
	fi

clean:  ## removes everything that was made, results in out/ excepted
	$(call say,removing target/ mpi/build $(VENV)/ and the built documentation)
	@rm -rf target mpi/build $(VENV) $(EXTENSION) build python/kasuri.egg-info papers/build papers/kasuri_papers.egg-info docs/_build docs/reference/generated
