#!/bin/sh
# cli_selftest.sh: the scripts that test the program cannot pass on nothing. Each runs against programs that are
# not the program: one that only fails, one that only succeeds, and one that hangs. None may pass a single
# check, and all must end.
. test/cli.sh

# In place of the programs that make builds, and of mpirun, something that does COMMANDS.
programs="train_gpt2emu_bf16 train_gpt2emu_fp32 backend_bf16 backend_fp32
$(sed -n 's|.*\$build/\([a-z_0-9]*\).*|\1|p' test/cli*.sh | sort -u)"
pretend() { # NAME COMMANDS
    mkdir -p "$dir/$1" "$dir/$1.bin"
    for name in $programs; do
        printf '#!/bin/sh\n%s\n' "$2" >"$dir/$1/$name"
        chmod +x "$dir/$1/$name"
    done
    cp "$dir/$1/train_gpt2" "$dir/$1.bin/mpirun"
}
pretend dead 'exit 1'
pretend silent 'exit 0'
pretend hanging 'exec sleep 1000000'

# Scripts that test something else than the program.
others='cli_selftest cli_run cli_lint cli_tools cli_data cli_make cli_build cli_gpu_check'

# passes_nothing PROGRAM SCRIPT: its closing line says 0 passed, and something failed.
passes_nothing() {
    env CLI_RANKS=1 CLI_LIMIT=${limit_of_script:-60} BUILD="$dir/$1" PATH="$dir/$1.bin:$PATH" sh "$2" >"$dir/seen" 2>&1
    [ $? -eq 1 ] || { echo "exit code $?"; tail -n 3 "$dir/seen"; return 1; }
    tail -n 1 "$dir/seen" | grep -E ': 0 passed, [1-9][0-9]* failed' ||
        { tail -n 1 "$dir/seen"; return 1; }
}

for script in test/cli_*.sh; do
    name=$(basename "$script" .sh)
    case " $others " in *" $name "*) continue ;; esac
    for program in dead silent; do
        check "$name against a $program program passes nothing" passes_nothing $program "$script"
    done
    limit_of_script=2
    check "$name against a hanging program passes nothing" passes_nothing hanging "$script"
    check "... says that it hung" grep -q '^  FAILED: .*: did not end within 2 seconds' "$dir/seen"
    limit_of_script=
done
for name in $others; do
    check "$name is a script" test -f "test/$name.sh"
done
finish cli_selftest
