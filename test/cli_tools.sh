#!/bin/sh
# cli_tools.sh: dev/plot draws what a log says; dev/setup.sh installs only what is missing, and where it
# may not, says what to do and lets the tests go on.
. test/cli.sh

# ---- dev/plot
mkdir -p "$dir/a run/it's"
log="$dir/a run/it's"
awk 'BEGIN { for (i = 0; i < 100; i++) { print i, "train", 2 + 3 / (i + 1); if (i % 50 == 0) print i, "val", 2.5 } }' >"$log/log.txt"
draws() { # FILE BEGINNING
    dev/plot -o "$dir/$1" "$log" && [ "$(head -c ${#2} "$dir/$1" | tr -d '\0')" = "$2" ]
}
if command -v gnuplot >/dev/null 2>&1; then
    check "a run is drawn as text, by name" sh -c "dev/plot \"$log\" | grep -q 'its: val'"
    check "two runs are drawn" sh -c "dev/plot \"$log\" \"$log\" | grep -c 'its: val' | grep -q 2"
    check "... as SVG" draws plot.svg '<?xml'
    check "... as PDF" draws plot.pdf '%PDF'
    refuses 1 "nowhere/log.txt cannot be read" "a run that is not there is named" dev/plot "$dir/nowhere"
    : >"$log/log.txt"
    refuses 1 "no loss in log.txt yet" "an empty log is no picture" dev/plot "$log"
else
    skip "gnuplot is not installed: dev/plot"
fi
refuses 2 "usage: dev/plot" "another kind of file is refused" dev/plot -o plot.bmp "$log"

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
check "who may not install is told the names, and the tests go on" says "apt install libopenmpi-dev"
check "... apt-get was not asked" test ! -e "$dir/asked"
user=
machine cc make
check "where there is no apt-get the names for others are told" says "brew install open-mpi gnuplot"
machine make mpicc mpirun gnuplot
check "a missing compiler is said" says "cc is missing"

finish cli_tools
