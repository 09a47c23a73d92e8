#!/bin/sh
# cli_tools.sh: dev/plot draws what a log says; dev/follow_metrics.py passes it on; dev/setup.sh installs only what is missing, and where it
# may not, says what to do and lets the tests continue; dev/keep_training.sh restarts what a restart can mend.
. test/cli.sh

# ---- dev/plot
mkdir -p "$dir/a run/it's"
log="$dir/a run/it's"
awk 'BEGIN { for (i = 0; i < 100; i++) { print i, "train", 2 + 3 / (i + 1); if (i % 50 == 0) print i, "val", 2.5 } }' >"$log/log.txt"
awk 'BEGIN { for (i = 0; i < 100; i++) printf "{\"event\":\"train\",\"step\":%d,\"loss\":2,\"lr\":%g,\"norm\":%g,\"tokens_per_second\":%d}\n", i, 1e-3 * i, 7 - i / 50, 1000 + i }' >"$log/metrics.jsonl"
text() { # PATTERN ARGUMENT...: the text picture has a line like this
    pattern=$1
    shift
    COLUMNS=80 dev/plot "$@" >"$dir/picture" && grep -qE "$pattern" "$dir/picture"
}
draws() { # FILE BEGINNING
    dev/plot -o "$dir/$1" "$log" && [ "$(head -c ${#2} "$dir/$1" | tr -d '\0')" = "$2" ]
}
check "a run is drawn as text, by name" text "o .*it's: val" "$log"
check "... between its smallest and largest loss" text '^ +5 \|\*' "$log"
check "two runs are drawn" sh -c 'COLUMNS=80 dev/plot "$1" "$1" >"$2" && [ "$(grep -c ": val" "$2")" -eq 2 ]' sh "$log" "$dir/picture"
check "the norm is drawn" text '^ +7 \|\*' --norm "$log"
check "tokens per second are drawn" text '^ +1099 \|.*\*$' --speed "$log"
check "the learning rate is drawn" text '^ +0.099 \|.*\*$' --rate "$log"
check "text needs no gnuplot" sh -c 'mkdir "$1" && for tool in sh awk sed tput mktemp rm cat head; do ln -s "$(command -v $tool)" "$1/$tool"; done && PATH=$1 COLUMNS=80 sh dev/plot "$2" | grep -q val' sh "$dir/few" "$log"
check "the schedule of options is drawn before a run" env BUILD="$build" COLUMNS=80 dev/plot --schedule --model gpt2
check "plan --rates prints the rates of steps that are executed" sh -c '"$1" plan --steps 20 --warmup 4 --lr 6e-4 --rates 100 >"$2" && [ "$(wc -l <"$2")" -eq 20 ] && grep -qx "0 0.00015" "$2" && grep -qx "12 0.00033" "$2" && tail -n 1 "$2" | grep -q "^19 "' sh "$program" "$dir/rates"
refuses 2 "--rates is an option of" "a run takes no --rates" "$program" --rates 5
refuses 1 "no hella in the logs yet" "a run that was not scored has no curve" dev/plot --hella "$log"
refuses 1 "nowhere/log.txt cannot be read" "a run that is not there is named" dev/plot "$dir/nowhere"
if command -v gnuplot >/dev/null 2>&1; then
    check "... as SVG" draws plot.svg '<?xml'
    check "... as PDF" draws plot.pdf '%PDF'
    check "the schedule as PNG" sh -c 'BUILD="$1" dev/plot --schedule --steps 9 -o "$2" && head -c 4 "$2" | grep -q PNG' sh "$build" "$dir/rate.png"
    check "a page has all curves" sh -c 'dev/plot --page "$1" "$2" && [ -s "$1/loss.png" ] && [ -s "$1/norm.png" ] && [ -s "$1/speed.png" ] && grep -q loss.png "$1/index.html"' sh "$dir/page" "$log"
else
    skip "gnuplot is not installed: dev/plot"
fi
mkdir -p "$dir/empty"
: >"$dir/empty/log.txt"
refuses 1 "no loss in the logs yet" "an empty log is not drawn" dev/plot "$dir/empty"
check "another kind of file is refused" sh -c '! dev/plot -o plot.bmp "$1" 2>"$2" && grep -q "usage: dev/plot" "$2"' sh "$log" "$dir/usage"

# ---- dev/follow_metrics.py, with a stand-in for TensorBoard's writer
if command -v python3 >/dev/null 2>&1; then
    mkdir -p "$dir/modules"
    cat >"$dir/modules/tensorboardX.py" <<'END'
class SummaryWriter:
    def __init__(self, directory):
        print("in", directory)
    def add_scalar(self, name, value, step):
        print(name, value, step)
    def close(self):
        print("closed")
END
    echo '{"event":"val","step":99,"loss":2.5,"tokens":7}' >>"$log/metrics.jsonl"
    follow() { PYTHONPATH="$dir/modules" python3 dev/follow_metrics.py "$@" >"$dir/followed"; }
    check "metrics are followed into TensorBoard" follow "$log" --tensorboard "$dir/board" --once
    check "... every norm" sh -c '[ "$(grep -c "^train/norm " "$1")" -eq 100 ]' sh "$dir/followed"
    check "... and the validation loss, at its step" grep -qx 'val/loss 2.5 99' "$dir/followed"
    check "... to the end" grep -qx closed "$dir/followed"
    refuses 1 "no such file" "a run that is not there is named" python3 dev/follow_metrics.py "$dir/nowhere" --tensorboard "$dir/board"
else
    skip "python3 is not installed: dev/follow_metrics.py"
fi

# ---- dev/setup.sh, on a machine that has only what stands in $dir/bin
mkdir "$dir/bin"
machine() { # TOOL...: each says what it was asked, in $dir/asked
    rm -f "$dir"/bin/* "$dir/asked"
    for tool in sh cat env; do ln -s "$(command -v $tool)" "$dir/bin/$tool"; done
    for tool in "$@"; do
        printf '#!/bin/sh\necho %s "$@" >>"%s"\n' "$tool" "$dir/asked" >"$dir/bin/$tool"
        chmod +x "$dir/bin/$tool"
    done
    # the superuser, or one who is asked for a password
    printf '#!/bin/sh\necho %s\n' "${user:-0}" >"$dir/bin/id"
    printf '#!/bin/sh\nexit 1\n' >"$dir/bin/sudo"
    chmod +x "$dir/bin/id" "$dir/bin/sudo"
}
setup() { CC=cc PATH=$dir/bin sh dev/setup.sh; }
says() { setup >"$dir/seen" && grep -qF -- "$1" "$dir/seen"; }
asked() { grep -qx -- "$1" "$dir/asked"; }
apt='apt-get install -qq -y --no-install-recommends'

machine cc make mpicc mpirun gnuplot apt-get
check "nothing is done where nothing is missing" says "are here"
check "... apt-get was not asked" test ! -e "$dir/asked"
machine cc make mpicc mpirun apt-get
check "gnuplot alone is installed when only that is missing" says "installed gnuplot-nox"
check "... and nothing else" asked "$apt gnuplot-nox"
machine cc make gnuplot apt-get
check "Open MPI alone is installed when only that is missing" says "installed libopenmpi-dev openmpi-bin"
check "... and nothing else" asked "$apt libopenmpi-dev openmpi-bin"
user=1000 machine cc make apt-get
check "without permission the names are printed, and the tests continue" says "apt install libopenmpi-dev"
check "... apt-get was not asked" test ! -e "$dir/asked"
user=
machine cc make
check "without apt-get the names for other systems are printed" says "brew install open-mpi gnuplot"
machine make mpicc mpirun gnuplot
check "a missing compiler is said" says "cc is missing"

# ---- dev/keep_training.sh: what it starts again, and what not (cli_keep.sh has real runs)
keep="sh dev/keep_training.sh -w 0"
# ends CODE STARTS "what it proves" OPTIONS...: a command that ends with CODE is started STARTS times, then its code is
# the script's.
ends() {
    code=$1 starts=$2 proves=$3
    shift 3
    : >"$dir/starts"
    # shellcheck disable=SC2016,SC2086 # $1 is that of the inner shell; a list
    $keep "$@" sh -c 'echo x >>"$1"; exit "$2"' sh "$dir/starts" "$code" --out "$dir/none" 2>"$dir/heard" </dev/null
    check "$proves" test "$?,$(wc -l <"$dir/starts")" = "$code,$starts"
}
ends 1 3 "a run that fails is started again -r times, and no more" -r 2
check "... and it says that it gave up" grep -q "exit code 1, and 2 restarts were all; given up" "$dir/heard"
ends 137 2 "likewise one that is killed" -r 1
ends 75 1 "a run that was stopped stays stopped"
ends 0 1 "a run that is done is not started again"
ends 2 1 "a usage error is not started again"
ends 3 1 "a bad input file is not"
ends 4 1 "a loss that is not finite is not"
# shellcheck disable=SC2086 # lists
{
    refuses 2 "has no --out" "a command whose checkpoints are not known" $keep true
    refuses 2 "expected a whole number" "-r with a word instead of a number" $keep -r x true --out "$dir/none"
    refuses 2 "expected whole numbers from 1" "-n with 0 ranks" $keep -n 2,0 echo RANKS --out "$dir/none"
    refuses 2 "belong together" "-n without RANKS" $keep -n 2 echo --out "$dir/none"
    $keep "$dir/missing" --out "$dir/none" 2>"$dir/heard"
    check "a program that is not there is not started again" test $? -eq 127
    check "... and it says so" grep -q "could not be run (exit code 127)" "$dir/heard"
}
# shellcheck disable=SC2086 # a list
check "blanks within words stay, RANKS is replaced, and --resume auto is added" prints '^a b\|3\|--out\|x\|--resume\|auto\|$' \
    $keep -n 3 printf '%s|' "a b" RANKS --out x
finish cli_tools
