# cuda.mk: the CUDA build, and the same source on the emulator; included by the Makefile.
#
# train_gpt2cu needs nvcc (CUDA 12 or 13; on PATH or in CUDA_HOME), and for more than one GPU NCCL and
# MPI, each used where compiling and linking with it works. train_gpt2emu and the tests need a C++17
# compiler. The object files of shared code are those of the CPU build.

# ---- settings -------------------------------------------------------------------------------------
ifeq ($(origin CXX),default) # the C++ side of CC
CXX := $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),$(patsubst cc,c++,$(subst gcc,g++,$(CC))))
endif
PRECISION ?= BF16#     or FP32: of train_gpt2cu and train_gpt2emu
NCCL_HOME ?=#          where NCCL lies, if not where the compiler looks

precision := $(if $(filter FP32 fp32,$(PRECISION)),fp32,bf16)
define_fp32 := -DPRECISION_FP32
define_bf16 :=

# ---- the emulator -----------------------------------------------------------------------------------
try_cxx = $(shell printf '\043include <functional>\nint main() { return 0; }\n' | \
                  $(CXX) -std=c++17 -x c++ - -o /dev/null 2>/dev/null && echo yes)
cxx = $(call once,cxx,$(try_cxx))

# The compiler's checks of alignment and bounds report through the emulator (faults.cpp).
cxx_flags = -std=c++17 -Wall -Wextra -Wno-unknown-pragmas $(OPTIMIZE) $(arch) -fno-strict-aliasing -Itest/emulator \
            $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer) \
            $(if $(mpi),-DUSE_MPI -DUSE_NCCL -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX \
            $(addprefix -isystem ,$(patsubst -I%,%,$(filter -I%,$(mpi_flags)))))
kernel_flags = $(cxx_flags) -fsanitize=alignment,bounds -fno-sanitize-recover=all \
               -fsanitize-recover=alignment,bounds -DCLASSIFIER_ROWS=25

emulator_sources := $(wildcard test/emulator/*.cpp)
emulator := $(patsubst test/emulator/%.cpp,$(BUILD)/emulator/%.o,$(emulator_sources))
backend_tests := $(patsubst test/%.c,$(BUILD)/test/%.o,$(wildcard test/backend*.c)) \
                 $(BUILD)/test_double/expect.o
tests += $(if $(cxx),$(BUILD)/test_emulator)
test: $(if $(cxx),$(foreach p,bf16 fp32,$(BUILD)/backend_$(p) $(BUILD)/train_gpt2emu_$(p)) $(BUILD)/bench_emulated_bf16) # test/cli_cuda.sh

cxx_link = $(Q)$(CXX) $(filter-out -std=gnu11,$(flags)) -o $@ $^ $(libs)

$(BUILD)/emulator/%.o: test/emulator/%.cpp $(BUILD)/flags
	$(call say,c++,$<)
	$(Q)mkdir -p $(@D) && $(CXX) $(cxx_flags) -MMD -MP -c -o $@ $<
$(BUILD)/emulated_%/train_gpt2.o: train_gpt2.cu $(BUILD)/flags
	$(call say,c++,"$< ($*)")
	$(Q)mkdir -p $(@D) && $(CXX) $(kernel_flags) $(define_$*) -MMD -MP -x c++ -c -o $@ $<

$(BUILD)/backend_%: $(BUILD)/emulated_%/train_gpt2.o $(emulator) $(backend_tests) $(oracle) $(shared)
	$(call say,link,$@)
	$(cxx_link)
$(BUILD)/test_emulator: $(BUILD)/test_emulator.o $(emulator)
	$(call say,link,$@)
	$(cxx_link)
$(BUILD)/test_emulator.o: test/test_emulator.cpp $(BUILD)/flags
	$(call say,c++,$<)
	$(Q)$(CXX) $(kernel_flags) -MMD -MP -c -o $@ $<
$(BUILD)/train_gpt2emu_%: $(BUILD)/train_gpt2.o $(BUILD)/emulated_%/train_gpt2.o $(emulator) $(shared)
	$(call say,link,$@)
	$(cxx_link)
$(BUILD)/bench_emulated_%: $(BUILD)/dev/bench_backend.o $(BUILD)/emulated_%/train_gpt2.o $(emulator) $(shared)
	$(call say,link,$@)
	$(cxx_link)

train_gpt2emu: $(BUILD)/train_gpt2emu_$(precision) FORCE ## the CUDA program, executed on a CPU
	$(copy)

# ---- nvcc -----------------------------------------------------------------------------------------
find_nvcc = $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc) \
                        $(wildcard /usr/local/cuda/bin/nvcc))
nvcc      = $(call once,nvcc,$(find_nvcc))
cuda_root = $(patsubst %/bin/,%,$(dir $(realpath $(nvcc))))
cuda_lib  = $(firstword $(wildcard $(cuda_root)/lib64 $(cuda_root)/lib $(cuda_root)/targets/*/lib))

# The architecture of the GPU that is here, or else all that are tuned for, and PTX for what comes.
find_arch = $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u))
cuda_arch = $(call once,cuda_arch,$(or $(find_arch),80 89 90))
gencode   = $(foreach a,$(cuda_arch),-gencode arch=compute_$(a),code=sm_$(a)) \
            -gencode arch=compute_$(lastword $(cuda_arch)),code=compute_$(lastword $(cuda_arch))

# NCCL: with the toolkit or the system, in NCCL_HOME, or as pip installs it.
nccl_main   = \043include <nccl.h>\nint main() { ncclUniqueId id; return ncclGetUniqueId(&id); }
nccl_places = '' $(NCCL_HOME) $(shell python3 -c 'import nvidia.nccl as n; print(n.__path__[0])' 2>/dev/null)
nccl_try    = for home in $(nccl_places); do for lib in -lnccl -l:libnccl.so.2; do \
              found="$${home:+-isystem $$home/include -L$$home/lib -Wl,-rpath,$$home/lib} $$lib"; \
              printf '$(nccl_main)\n' | $(CXX) -isystem $(cuda_root)/include -x c++ - -o /dev/null \
              -L$(cuda_lib) -Wl,-rpath,$(cuda_lib) $$found 2>/dev/null && echo $$found && exit; done; done
nccl        = $(call once,nccl,$(if $(mpi),$(shell $(nccl_try))))

nvcc_flags = -std=c++17 -O3 $(gencode) -Xptxas -v,-warn-spills,-warn-lmem-usage -Xcompiler -Wall \
             $(if $(nccl),-DUSE_NCCL $(filter-out -l% -L% -Wl%,$(nccl)))
cuda_libs  = -L$(cuda_lib) -Wl,-rpath,$(cuda_lib) -lcublasLt -lcudart $(filter-out -isystem %/include,$(nccl))

need_nvcc = $(if $(nvcc),,$(error nvcc was not found: install the CUDA toolkit (12 or 13), or say where it is \
            with CUDA_HOME=/path))

# What ptxas prints about registers and shared memory is kept beside the object. A spill is a warning, and an error
# only for the tests (dev/registers.sh): another toolkit than the tested ones may spill, and the program still runs.
$(BUILD)/cuda_%/train_gpt2.o: train_gpt2.cu $(BUILD)/flags
	$(need_nvcc)$(call say,nvcc,"$< ($*: $(cuda_arch))")
	$(Q)mkdir -p $(@D) && $(nvcc) $(nvcc_flags) $(define_$*) -MD -MP -MF $(@:.o=.d) -MT $@ -c -o $@ $< \
	    >$(@D)/ptxas.txt 2>&1 || { grep -v '^ptxas info' $(@D)/ptxas.txt; exit 1; }; grep warning $(@D)/ptxas.txt || :
$(BUILD)/train_gpt2cu_%: $(BUILD)/train_gpt2.o $(BUILD)/cuda_%/train_gpt2.o $(shared)
	$(call say,link,$@)
	$(Q)$(CXX) $(filter-out -std=gnu11,$(flags)) -o $@ $^ $(cuda_libs) $(libs)
$(BUILD)/device_%: $(BUILD)/cuda_%/train_gpt2.o $(backend_tests) $(oracle) $(shared)
	$(call say,link,$@)
	$(Q)$(CXX) $(filter-out -std=gnu11,$(flags)) -o $@ $^ $(cuda_libs) $(libs)
$(BUILD)/bench_device_%: $(BUILD)/dev/bench_backend.o $(BUILD)/cuda_%/train_gpt2.o $(shared)
	$(call say,link,$@)
	$(Q)$(CXX) $(filter-out -std=gnu11,$(flags)) -o $@ $^ $(cuda_libs) $(libs)

# With nvcc, `make test` also builds for all architectures; once, not for every set of other settings.
ifeq ($(BUILD),build)
test: $(if $(nvcc),$(foreach p,bf16 fp32,$(BUILD)/train_gpt2cu_$(p)))
endif

train_gpt2cu: $(BUILD)/train_gpt2cu_$(precision) FORCE ## the program, for NVIDIA GPUs (PRECISION=BF16 or FP32)
	$(copy)

test_gpt2cu: $(BUILD)/device_bf16 $(BUILD)/device_fp32 ## run every kernel's tests on this machine's GPU
	$(Q)BUILD=$(BUILD) sh test/run.sh $^
