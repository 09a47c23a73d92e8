# train_gpt2: `make help` lists the targets. Nothing is needed but a C compiler and make; OpenMP and
# Open MPI are used where compiling and linking with them works. V=1 shows the commands.

# ---- settings (make NAME=value) ---------------------------------------------------------------
CC       ?= cc
BUILD    ?= build#      where everything goes that is made
OPENMP   ?= 1#          0: one thread
MPI      ?= 1#          0: one rank
KERNELS  ?= cpu#        or plain: train_gpt2 and test_gpt2 on the plain loops of llmc/plain/
ARCH     ?= -march=native# or portable: kernels for x86-64-v2, v3 and v4 in one program, which chooses at start
SANITIZE ?=#            address,undefined: a build that checks itself
OPTIMIZE ?= -O2 -g
CFLAGS   ?=
LDFLAGS  ?=
PREFIX   ?= /usr/local# where `make install` puts things, below DESTDIR

# ---- what the compiler can do: found out by doing it --------------------------------------------
# Each when it is first needed, and that is after `setup`, which may install it: $(call once,NAME,TEXT) keeps
# what TEXT expands to.
once      = $(eval $(1) := $(2))$($(1))
try       = $(shell printf '$(2)\n' | $(CC) $(1) -x c - -o /dev/null $(3) -lm $(LDFLAGS) 2>/dev/null && echo yes)
empty     = int main(void) { return 0; }
x86       = $(call once,x86,$(call try,-march=x86-64,$(empty)))
levels    = $(call once,levels,$(if $(filter portable,$(ARCH)),$(if $(x86),v2 v3 v4)))
wanted    = $(if $(filter portable,$(ARCH)),$(if $(x86),-march=x86-64-v2),$(ARCH))
arch      = $(call once,arch,$(if $(call try,$(wanted),$(empty)),$(wanted)))
openmp    = $(call once,openmp,$(if $(filter 1,$(OPENMP)),$(if $(call try,-fopenmp,$(empty)),-fopenmp)))
mpi_flags = $(call once,mpi_flags,$(if $(filter 1,$(MPI)),$(shell mpicc --showme:compile 2>/dev/null)))
mpi_libs  = $(call once,mpi_libs,$(if $(filter 1,$(MPI)),$(shell mpicc --showme:link 2>/dev/null)))
mpi_main  = \043include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }
mpi       = $(call once,mpi,$(if $(mpi_libs),$(call try,$(mpi_flags),$(mpi_main),$(mpi_libs))))

# -ffp-contract=off: a*b+c is rounded twice, and fused only where the source says so (llmc/cpu/vec.h); a
# choice of the compiler's would give other bits on another processor. -ffast-math is never used: it breaks
# NaN detection and reproducibility. -fno-math-errno only keeps sqrt from setting errno.
flags = -std=gnu11 -Wall -Wextra $(OPTIMIZE) $(arch) -fno-math-errno $(openmp) \
        $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
        $(if $(mpi),-DUSE_MPI $(addprefix -isystem ,$(patsubst -I%,%,$(filter -I%,$(mpi_flags))))) \
        $(CFLAGS) -ffp-contract=off
libs  = $(if $(mpi),$(mpi_libs)) -lm $(LDFLAGS)

# ---- sources ------------------------------------------------------------------------------------
shared := $(patsubst %.c,$(BUILD)/%.o,$(filter-out llmc/cpu/% llmc/plain/%,$(wildcard llmc/*/*.c)))
cpu     = $(foreach level,$(or $(levels:%=_%),/),$(patsubst llmc/cpu/%.c,$(BUILD)/cpu_$(1)$(level:/=)/%.o,$(wildcard llmc/cpu/*.c))) \
          $(if $(levels),$(BUILD)/kernels/kernels.o)
plain   = $(patsubst llmc/plain/%.c,$(BUILD)/plain_$(1)/%.o,$(wildcard llmc/plain/*.c))
oracle := $(patsubst llmc/plain/%.c,$(BUILD)/oracle/%.o,$(wildcard llmc/plain/*.c)) # test/oracle.h
on     := $(if $(filter plain,$(KERNELS)),_plain,$(if $(filter cpu,$(KERNELS)),,$(error KERNELS=$(KERNELS): is cpu or plain)))
tests  := $(patsubst test/%.c,$(BUILD)/%,$(wildcard test/test_*.c)) \
          $(foreach r,float double,$(patsubst test/%.c,$(BUILD)/%_$(r),$(wildcard test/real_*.c))) \
          $(BUILD)/backend_cpu $(BUILD)/backend_plain $(BUILD)/fuzz_seeds
reference  = $(foreach r,float double,$(BUILD)/test_gpt2$(1)_$(r)) # against recorded float64 values
long    := test/cli_gpu_check.sh# takes minutes, and tests a script for machines with a GPU
scripts := $(filter-out $(long),$(wildcard test/cli_*.sh))

# Threads that wait for each other sleep: spinning is a little faster on an idle machine, ten times
# slower on a busy one.
export OMP_WAIT_POLICY ?= passive

Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s%s\n' $(1) $(2))

# ---- targets ------------------------------------------------------------------------------------
.PHONY: all help run setup test test_long coverage counted list-tests test_gpt2 test_gpt2cu chapter27 mutate soak fuzz lint bench clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: train_gpt2

include dev/cuda.mk # train_gpt2cu, train_gpt2emu and their tests

help: ## what can be made
	@sed -n 's/^\([a-z_0-9]*\):.*## \(.*\)/  make \1@\2/p' Makefile dev/cuda.mk | awk -F@ '{ printf "%-20s %s\n", $$1, $$2 }'

bin := $(DESTDIR)$(PREFIX)/bin
man := $(DESTDIR)$(PREFIX)/share/man/man1
doc := $(DESTDIR)$(PREFIX)/share/doc/train_gpt2
.PHONY: install
install: train_gpt2 ## put the program, its manual page and licence below PREFIX (/usr/local), in DESTDIR
	$(Q)mkdir -p '$(bin)' '$(man)' '$(doc)'
	$(Q)cp train_gpt2 '$(bin)/' && cp LICENSE README.md '$(doc)/'
	$(Q)sh dev/man_page.sh ./train_gpt2 >'$(man)/train_gpt2.1'

run: train_gpt2 ## build, then train the tiny model on the built-in text and print samples
	$(Q)./train_gpt2

setup: ## install what the tests use beside the compiler (Open MPI, gnuplot)
	$(Q)sh dev/setup.sh

references := $(call reference) $(call reference,_plain)
programs   := $(patsubst %,$(BUILD)/%,train_gpt2 train_gpt2_plain train_gpt2_alone make_data http_server) \
              $(if $(filter Linux,$(shell uname)),$(BUILD)/fault_shim.so $(BUILD)/strangers)
test: $(programs) $(tests) $(references) ## build and run every test
	$(Q)BUILD=$(BUILD) sh test/run.sh $(tests) $(references) $(scripts)

test_long: test ## the same, and a rehearsal of dev/gpu_check.sh
	$(Q)BUILD=$(BUILD) sh test/run.sh $(long)

kernels := $(filter $(BUILD)/real_%,$(tests)) $(call reference)
.PHONY: test_kernels
test_kernels: $(BUILD)/train_gpt2 $(kernels) ## only the tests of what depends on the instruction set (ARCH=)
	$(Q)BUILD=$(BUILD) sh test/run.sh $(kernels) test/cli_bits.sh

test_gpt2: $(call reference,$(on)) ## check gradients, optimizer and schedule against recorded values
	$(Q)V=1 BUILD=$(BUILD) sh test/run.sh $^

chapter27: $(BUILD)/test_gpt2_double ## print each number of chapter 27 beside the program's own
	$(Q)$< --chapter27

coverage: ## list the lines and branches that no test runs, in build/coverage/uncovered.txt
	$(Q)sh dev/coverage.sh

# For coverage.sh: what it builds, and what it then runs.
counted: $(programs) $(tests) $(references)
list-tests:
	@echo $(tests) $(references) $(filter-out test/cli_selftest.sh test/cli_run.sh test/cli_lint.sh test/cli_make.sh,$(scripts))

mutate: ## show that these tests fail for each of a list of small faults in the code
	$(Q)sh dev/mutate.sh

fuzz: ## feed damaged files to every reader, FUZZ_SECONDS (60) each; needs clang
	$(Q)MAKE=$(MAKE) sh test/fuzz/run.sh

soak: train_gpt2 $(BUILD)/train_gpt2_alone $(BUILD)/fault_shim.so $(BUILD)/strangers ## kill runs 1,000 times, restart them, start two at once, let calls fail (an hour)
	$(Q)for script in cli_resume cli_restart cli_watchdog cli_faults; do BUILD=$(BUILD) SOAK=1 sh test/$$script.sh || exit 1; done

lint: ## includes point one way; no CUDA in shared code; no assert, no fast-math; short files and lines
	$(Q)sh dev/lint.sh

benches := $(BUILD)/bench_kernels $(BUILD)/bench_step $(BUILD)/bench_files
# Threads wait as those of the program do (llmc/base/start.c).
waiting = env -u OMP_WAIT_POLICY GOMP_SPINCOUNT=1000 KMP_BLOCKTIME=1
# What the command line says of the shape: make bench_step B=4 T=1024 LAYERS=12 HEADS=12 CHANNELS=768 GROWTH=1
step = $(filter B=% T=% LAYERS=% HEADS=% CHANNELS=% UPDATES=% GROWTH=%,$(MAKEOVERRIDES))
.PHONY: bench_step
bench_step: $(BUILD)/bench_step ## whole updates of a shape: B=4 T=64 LAYERS=12 HEADS=12 CHANNELS=768; GROWTH=1: what doubling costs
	$(Q)$(waiting) $(BUILD)/bench_step $(step)
bench: $(benches) $(BUILD)/bench_ranks $(BUILD)/bench_text ## kernels, updates, files, sampling, text beside what the machine can do
	$(Q)$(waiting) $(BUILD)/bench_step $(step)
	$(Q)for bench in $(filter-out %/bench_step,$(benches)); do $(waiting) $$bench || exit 1; done
	$(Q)BUILD=$(BUILD) $(waiting) sh dev/bench_ranks.sh
	$(Q)BUILD=$(BUILD) sh dev/bench_text.sh

clean: ## remove everything that was made
	$(Q)rm -rf build train_gpt2 train_gpt2cu train_gpt2emu

# Several programs are made under this name: it is copied when it is another one, not when it is older.
copy = $(Q)cmp -s $< $@ || cp -f $< $@
train_gpt2: $(BUILD)/train_gpt2$(on) FORCE ## the program, for the CPU (KERNELS=plain: on the plain loops)
	$(copy)

# ---- rules --------------------------------------------------------------------------------------
$(BUILD)/train_gpt2: $(BUILD)/train_gpt2.o $(shared) $(call cpu,float)
$(BUILD)/train_gpt2_plain: $(BUILD)/train_gpt2.o $(shared) $(call plain,float)
$(BUILD)/test_%: $(BUILD)/test/test_%.o $(shared) $(call cpu,float)
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)
$(BUILD)/real_%_float: $(BUILD)/test_float/real_%.o $(shared) $(call cpu,float) $(oracle)
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)
$(BUILD)/real_%_double: $(BUILD)/test_double/real_%.o $(shared) $(call cpu,double) $(oracle)
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)
gpt2_parts = $(patsubst %,$(BUILD)/test_$(1)/%.o,expect tiny gpt2_operations gpt2_model $(2) \
             gpt2_update chapter27_adamw chapter27_mlp chapter27_batches gpt2_main) $(oracle)
gpt2_double = $(call gpt2_parts,double,gpt2_differences gpt2_program)
$(BUILD)/test_gpt2_float: $(call gpt2_parts,float) $(shared) $(call cpu,float)
$(BUILD)/test_gpt2_plain_float: $(call gpt2_parts,float) $(shared) $(call plain,float)
$(BUILD)/test_gpt2_double: $(gpt2_double) $(shared) $(call cpu,double) | $(BUILD)/train_gpt2
$(BUILD)/test_gpt2_plain_double: $(gpt2_double) $(shared) $(call plain,double) | $(BUILD)/train_gpt2_plain
$(references):
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)
$(BUILD)/backend_cpu: $(backend_tests) $(call cpu,float) $(oracle) $(shared)
$(BUILD)/backend_plain: $(backend_tests) $(call plain,float) $(oracle) $(shared)
$(BUILD)/backend_cpu $(BUILD)/backend_plain:
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)
$(BUILD)/make_data: $(BUILD)/test/make_data.o
# Readers of files in a harness: fatal() comes back, and files are blocks of exactly their size.
fuzz_parts = $(patsubst test/fuzz/%.c,$(BUILD)/test/fuzz/%.o,$(filter-out %/fuzzer.c %/seeds.c,$(wildcard test/fuzz/*.c))) \
             $(filter-out %/base/error.o %/files/input.o,$(shared)) $(call cpu,float)
$(BUILD)/fuzz_seeds: $(BUILD)/test/fuzz/seeds.o $(fuzz_parts)
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)
$(BUILD)/fuzzer: $(BUILD)/test/fuzz/fuzzer.o $(fuzz_parts)
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -fsanitize=fuzzer -o $@ $^ $(libs)
$(BUILD)/fault_shim.so: test/fault_shim.c
	$(call say,link,$@)
	$(Q)mkdir -p $(@D) && $(CC) -O2 -Wall -Wextra -shared -fPIC -o $@ $< -ldl
$(BUILD)/strangers: test/strangers.c
	$(call say,link,$@)
	$(Q)mkdir -p $(@D) && $(CC) -O2 -Wall -Wextra -o $@ $<
$(BUILD)/http_server: $(BUILD)/test/http_server.o
$(BUILD)/bench_%: $(BUILD)/dev/bench_%.o $(shared) $(call cpu,float)
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)
$(BUILD)/train_gpt2 $(BUILD)/train_gpt2_plain $(BUILD)/make_data $(BUILD)/http_server:
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)

# The program without MPI, whatever the settings: a test starts it under mpirun.
world := $(BUILD)/llmc/ranks/world_mpi.o $(BUILD)/llmc/ranks/world_alone.o
$(BUILD)/train_gpt2_alone: $(BUILD)/train_gpt2.o $(filter-out $(world),$(shared)) $(BUILD)/alone/ranks/world_alone.o $(call cpu,float)
	$(call say,link,$@)
	$(Q)$(CC) $(flags) -o $@ $^ $(libs)

compile = $(Q)mkdir -p $(@D) && $(CC) $(flags) $(1) -MMD -MP -c -o $@ $<
$(BUILD)/%.o: %.c $(BUILD)/flags
	$(call say,cc,$<)
	$(call compile)
$(BUILD)/test/%.o: test/%.c $(BUILD)/flags | $(BUILD)/oracle/plain_ops.h
	$(call say,cc,$<)
	$(call compile,-I$(BUILD)/oracle)
$(BUILD)/alone/%.o: llmc/%.c $(BUILD)/flags
	$(call say,cc,"$< (alone)")
	$(call compile,-UUSE_MPI)
$(BUILD)/cpu_float/%.o: llmc/cpu/%.c $(BUILD)/flags
	$(call say,cc,$<)
	$(call compile,-DREAL=float)
$(BUILD)/cpu_double/%.o: llmc/cpu/%.c $(BUILD)/flags
	$(call say,cc,"$< (double)")
	$(call compile,-DREAL=double)
# What runs on every processor, and says when the rest does not.
$(BUILD)/llmc/base/processor.o: llmc/base/processor.c $(BUILD)/flags
	$(call say,cc,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out $(arch),$(flags)) $(if $(x86),-march=x86-64) -MMD -MP -c -o $@ $<

# ARCH=portable: a folder for each level, with the level before all names, and kernels.c to choose among them.
define level_rule # REAL LEVEL
$(BUILD)/cpu_$(1)_$(2)/%.o: llmc/cpu/%.c $(BUILD)/kernels/$(2).h $(BUILD)/flags
	$$(call say,cc,"$$< ($(1), x86-64-$(2))")
	$$(call compile,-DREAL=$(1) -march=x86-64-$(2) -mprefer-vector-width=512 -include $(BUILD)/kernels/$(2).h)
endef
$(foreach level,v2 v3 v4,$(foreach real,float double,$(eval $(call level_rule,$(real),$(level)))))
$(BUILD)/kernels/%.h: llmc/ops.h $(wildcard llmc/cpu/*.h) dev/kernels.awk
	$(Q)mkdir -p $(@D) && awk -v prefix=$*_ -f dev/kernels.awk $(filter %.h,$^) >$@
$(BUILD)/kernels/kernels.c: llmc/ops.h dev/kernels.awk
	$(Q)mkdir -p $(@D) && awk -f dev/kernels.awk $< >$@
$(BUILD)/kernels/kernels.o: $(BUILD)/kernels/kernels.c $(BUILD)/flags
	$(call say,cc,$<)
	$(call compile,-I.)

$(BUILD)/plain_float/%.o: llmc/plain/%.c $(BUILD)/flags
	$(call say,cc,$<)
	$(call compile,-DREAL=float)
$(BUILD)/plain_double/%.o: llmc/plain/%.c $(BUILD)/flags
	$(call say,cc,"$< (double)")
	$(call compile,-DREAL=double)
$(BUILD)/test_float/%.o: test/%.c $(BUILD)/flags | $(BUILD)/oracle/plain_ops.h
	$(call say,cc,$<)
	$(call compile,-DREAL=float -I$(BUILD)/oracle)
$(BUILD)/test_double/%.o: test/%.c $(BUILD)/flags | $(BUILD)/oracle/plain_ops.h
	$(call say,cc,"$< (double)")
	$(call compile,-DREAL=double -I$(BUILD)/oracle)

# llmc/plain/ as the oracle of the tests: plain_ before the names of all operations (test/oracle.h).
$(BUILD)/oracle/%.o: llmc/plain/%.c $(BUILD)/oracle/plain_names.h $(BUILD)/flags
	$(call say,cc,"$< (oracle)")
	$(call compile,-DREAL=double -include $(BUILD)/oracle/plain_names.h)
$(BUILD)/oracle/plain_ops.h $(BUILD)/oracle/plain_names.h: llmc/ops.h test/oracle.awk
	$(Q)mkdir -p $(@D) && awk -v names=$(if $(findstring names,$@),1,0) -f test/oracle.awk $< >$@

# The built-in text is this project's own source and docs, as the assembler includes it.
text := README.md train_gpt2.c $(sort $(wildcard llmc/*.h llmc/*/*.h llmc/*/*.c))
$(BUILD)/builtin.txt: $(text)
	$(Q)mkdir -p $(@D) && cat $(text) > $@
$(BUILD)/llmc/data/builtin_text.o: llmc/data/builtin_text.c $(BUILD)/builtin.txt $(BUILD)/flags
	$(call say,cc,$<)
	$(call compile,-DBUILTIN_TEXT=\"$(BUILD)/builtin.txt\")

$(BUILD)/llmc/text/gpt2_merges.o: llmc/text/gpt2_merges.bin # which the assembler includes

# Rewritten only when the flags change, so that a change of settings rebuilds what it concerns. Everything that
# is compiled waits for it, and so for setup where that is asked for too.
$(BUILD)/flags: FORCE | $(filter setup,$(MAKECMDGOALS))
	$(Q)mkdir -p $(@D); echo '$(CC) $(CXX) $(flags) $(libs)' | cmp -s - $@ || echo '$(CC) $(CXX) $(flags) $(libs)' > $@

# What --version prints: the commit of this clone, or of the archive that was made of one.
archived := $Format:%h$
commit    = $(if $(wildcard .git),$(shell git describe --always --dirty --abbrev=10 2>/dev/null),$(filter-out ormat:%,$(archived)))
$(BUILD)/commit.h: FORCE
	$(Q)mkdir -p $(@D); echo '#define COMMIT "$(or $(commit),unknown)"' | cmp -s - $@ || \
	    echo '#define COMMIT "$(or $(commit),unknown)"' > $@
$(BUILD)/llmc/commands/command_version.o: llmc/commands/command_version.c $(BUILD)/commit.h $(BUILD)/flags
	$(call say,cc,$<)
	$(call compile,-include $(BUILD)/commit.h)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
