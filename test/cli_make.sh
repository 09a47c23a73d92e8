#!/bin/sh
# cli_make.sh: the build itself: what the choices of make mean, and that a change rebuilds what depends on it, and
# nothing else. Compilers that compile nothing stand in for the real ones: they note what they are asked to make, and
# write what it depends on, as the real ones say.
. test/cli.sh
unset MAKEFLAGS MFLAGS MAKELEVEL BUILD CC CXX ARCH SANITIZE OPENMP MPI OPTIMIZE KERNELS CFLAGS # choices of who runs this
export LC_ALL=C

# ---- the choice of kernels
check "make KERNELS=plain links the plain loops" prints 'train_gpt2_plain' make -n BUILD="$dir/made" KERNELS=plain train_gpt2
refused() { ! make -n KERNELS=fast train_gpt2 >"$dir/out" 2>&1 && cat "$dir/out"; }
check "make KERNELS=fast names the two that there are" says 'KERNELS=fast: is cpu or plain' refused

# ---- what is built again
# compiler NAME REAL: objects get their list of dependencies, nothing else is made; all else the real one does.
compiler() {
    cat >"$dir/$1" <<END
#!/bin/sh
object= source= object_next= compiles= probe=
for word in "\$@"; do
    [ -z "\$object_next" ] || object=\$word
    object_next=
    case \$word in
    -o) object_next=1 ;;
    -c) compiles=1 ;;
    -) probe=1 ;;
    *.c | *.cpp | *.cu) source=\$word ;;
    esac
done
[ -z "\$probe" ] && [ "\$object" != /dev/null ] && [ -n "\$object" ] || exec $2 "\$@"
echo "\$object" >>"$dir/log"
[ -z "\$compiles" ] || $2 -E -P "\$@" -o /dev/null -MMD -MP -MT "\$object" -MF "\${object%.o}.d" 2>/dev/null ||
    $2 -E "\$@" -MMD -MP -MT "\$object" -MF "\${object%.o}.d" >/dev/null 2>&1
: >"\$object"
END
    chmod +x "$dir/$1"
}
mkdir "$dir/tree"
cp -R Makefile README* LICENSE train_gpt2.c train_gpt2.cu llmc test dev "$dir/tree"
find "$dir/tree" -type f -exec touch -d '2020-01-01' {} +
compiler cc cc
compiler cxx c++
# made TARGET... : builds in the tree, and says which files were made: objects and programs, in order of name.
made() {
    : >"$dir/log"
    (cd "$dir/tree" && make -s CC="$dir/cc" CXX="$dir/cxx" MPI=0 "$@") >"$dir/make.out" 2>&1 || { cat "$dir/make.out"; return 1; }
    sed 's|^build/||' "$dir/log" | sort -u
}
only() { # FILES TARGET...: exactly these are made
    want=$(echo $1 | tr ' ' '\n' | sort -u)
    shift
    got=$(made "$@") || { echo "$got"; return 1; }
    [ "$got" = "$want" ] || { echo "made: $got"; echo "wanted: $want"; return 1; }
}
nothing() { got=$(made "$@") && [ -z "$got" ] || { echo "made: $got"; return 1; }; }
change() { echo "// changed" >>"$dir/tree/$1"; }
# The objects whose source includes a file, as the compiler said when they were made.
users_of() { # FILE
    (cd "$dir/tree/build" && find . -name '*.d' | xargs grep -l "${1#llmc}" | sed 's|^\./||; s|\.d$|.o|')
}

check "the program is built" made train_gpt2
check "... all of its sources" test "$(grep -c '\.o$' "$dir/log")" -gt 90
check "... and linked" grep -qx 'build/train_gpt2' "$dir/log"
check "built again nothing is made" nothing train_gpt2
for header in llmc/train/plan.h llmc/cpu/vec.h llmc/ranks/watchdog.h; do
    users=$(users_of "$header")
    change "$header"
    # (the built-in text is the source itself)
    check "a change of $header makes what includes it, and what is made of that" \
        only "$users llmc/data/builtin_text.o train_gpt2" train_gpt2
    check "... once" nothing train_gpt2
done
change llmc/train/plan.c
check "a changed source is compiled alone" only "llmc/train/plan.o llmc/data/builtin_text.o train_gpt2" train_gpt2
change README.md
check "a changed README goes into the built-in text" only "llmc/data/builtin_text.o train_gpt2" train_gpt2
change test/test.h
check "a header of tests does not concern the program" nothing train_gpt2
echo 'int newcomer;' >"$dir/tree/llmc/base/newcomer.c"
check "a new source is compiled and linked" only "llmc/base/newcomer.o llmc/data/builtin_text.o train_gpt2" train_gpt2
check "other flags" made train_gpt2 CFLAGS=-DNEW
check "... make everything again" test "$(grep -c '\.o$' "$dir/log")" -gt 90
check "... once" nothing train_gpt2 CFLAGS=-DNEW
check "the old flags" made train_gpt2

check "a test is built" made build/test_batch
check "... without what the program has already" only "" build/test_batch
change test/files.h
check "a change of its header makes that test again" only "test/test_batch.o test_batch" build/test_batch
change llmc/data/batch.h
check "a change of a header of the program" made build/test_batch
check "... makes the test, and what else includes it" grep -qx 'build/test/test_batch.o' "$dir/log"
check "... and links it" grep -qx 'build/test_batch' "$dir/log"

if command -v c++ >/dev/null; then
    check "the emulator is built" made build/train_gpt2emu_fp32
    check "... once" nothing build/train_gpt2emu_fp32
    change llmc/cuda/flash.cuh
    check "a change of a CUDA header makes that object alone" only "emulated_fp32/train_gpt2.o train_gpt2emu_fp32" build/train_gpt2emu_fp32
    change test/emulator/cuda_runtime.h
    check "a change of the emulator's header" made build/train_gpt2emu_fp32
    check "... makes the kernels again" grep -qx 'build/emulated_fp32/train_gpt2.o' "$dir/log"
    check "... and nothing of the CPU build" not grep -q '^build/\(llmc\|cpu_float\)/' "$dir/log"
    cp "$dir/cxx" "$dir/cxx2"
    check "another C++ compiler" made build/train_gpt2emu_fp32 CXX="$dir/cxx2"
    check "... makes the kernels again, too" grep -qx 'build/emulated_fp32/train_gpt2.o' "$dir/log"
else
    skip "no C++ compiler: the emulator"
fi
finish cli_make
