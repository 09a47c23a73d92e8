#!/bin/sh
# lint.sh [ROOT]: what no compiler checks. Prints each line that breaks a rule, and which; exits 1 if any.
#
#   includes point one way     folders are layers (below); a layer includes itself and what it rests on,
#                              and no headers include each other in a circle
#   one source for all builds  no #if on CUDA in shared code: the linker chooses the device
#   floats are floats          no -ffast-math, no -Ofast: they break NaN detection and reproducibility
#   errors are messages        no assert() in llmc/: every error that a user can cause has one
#   a reading order            every file is named by README.md, dev/*.md or a comment of another file
#   documents are true         a function that README.md or dev/*.md names as `file:function` is there
#   a tidy place               the top level holds what the README's tour names; files can be read at
#                              one sitting; lines fit a screen; no tabs or blanks at line ends in C
#
# Needs only sh, awk, grep, find. test/cli_lint.sh plants faults to show that each rule is kept.
cd "${1:-$(dirname "$0")/..}" || exit 1

# A folder of llmc/ is a layer, and so are the seam llmc/ops.h, CUDA's side of it, and the program. Each
# with the layers that it rests on:
layers='
base       :
files      : base
ranks      : base
ops        : base
optimizer  : ops
model      : ops
text       : files
data       : files text ops ranks
settings   : optimizer
log        : files settings
weights    : model text
checkpoint : weights log ranks
eval       : model data
train      : checkpoint data eval
commands   : train
program    : commands
plain      : ops ranks
cpu        : ops ranks
cuda       : ops ranks
'

# Every include of the project: file, line, what is included.
# shellcheck disable=SC2016 # awk's $1, not the shell's
includes() {
    find llmc train_gpt2.* -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort |
        xargs awk '/^[ \t]*#[ \t]*include[ \t]*"/ { split($0, part, "\""); print FILENAME, FNR, part[2] }'
}

check_includes() {
    includes | awk -v layers="$layers" '
    function layer(path) { # llmc/model/gpt2.c: model; llmc/ops.h: ops
        if (path ~ /^train_gpt2\.c/) return path ~ /u$/ ? "cuda" : "program"
        sub(/^llmc\//, "", path)
        sub(/\/.*|\.h$/, "", path)
        return path in rests_on ? path : ""
    }
    function reaches(from, to,    i, n, below) { # whether a layer rests on another
        if (from == to) return 1
        n = split(rests_on[from], below, " ")
        for (i = 1; i <= n; i++) if (reaches(below[i], to)) return 1
        return 0
    }
    function circle(start, at,    i, n, next_to) { # whether the includes lead from at back to start
        n = split(leads_to[at], next_to, " ")
        for (i = 1; i <= n; i++) {
            if (next_to[i] == start) return 1
            if (!((start, next_to[i]) in seen)) {
                seen[start, next_to[i]] = 1
                if (circle(start, next_to[i])) return 1
            }
        }
        return 0
    }
    BEGIN {
        rows = split(layers, row, "\n")
        for (r = 1; r <= rows; r++) {
            if (split(row[r], part, /[ ]*:/) < 2) continue
            rests_on[part[1]] = part[2]
        }
    }
    {
        path = $1
        sub(/[^\/]*$/, "", path)
        path = path $3
        while (sub(/[^\/]+\/\.\.\//, "", path)) ;
        from = $1
        to = path
        a = layer(from)
        b = layer(to)
        where = $1 ":" $2 ": includes \"" $3 "\": "
        if (a == "") { if (!(from in reported)) print $1 ": is in no layer; give it a folder of dev/lint.sh"; reported[from] = 1 }
        else if (b == "") print where "is in no layer"
        else if (!reaches(a, b)) print where "layer " a " does not rest on layer " b
        if ($1 ~ /h$/ && from != to && index(" " leads_to[from] " ", " " to " ") == 0) leads_to[from] = leads_to[from] " " to
    }
    END {
        for (m in leads_to) if (circle(m, m)) print m ": includes itself in a circle:" leads_to[m]
    }'
}

# Lines of files that match a pattern of awk, comments left out: RULE PATTERN FILE...
forbid() {
    rule=$1 pattern=$2
    shift 2
    awk -v rule="$rule" -v pattern="$pattern" '
    {
        line = $0
        if (FILENAME ~ /\.(c|h|cu|cuh)$/) sub(/\/\/.*|^ \*.*|\/\*.*/, "", line)
        else sub(/#.*/, "", line)
        if (line ~ pattern) print FILENAME ":" FNR ": " rule ": " $0
    }' "$@"
}

# shellcheck disable=SC2086 # lists of our own names, without blanks
check_texts() {
    shared=$(find llmc train_gpt2.c -name '*.[ch]' ! -path 'llmc/cpu/*' ! -path 'llmc/plain/*' ! -path 'llmc/cuda/*' | sort)
    llmc=$(find llmc train_gpt2.* \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) | sort)
    all="$llmc $(find dev test \( -name '*.[ch]' -o -name '*.cu' -o -name '*.sh' -o -name '*.py' \) | sort)"
    forbid 'shared code must not know the device' '^[ \t]*#[ \t]*(el)?if.*(CUDA|NVCC)' $shared
    forbid 'error.h says what went wrong, assert does not' '(^|[^_a-zA-Z0-9])assert[ \t]*[(]' $llmc
    forbid 'breaks NaN and reproducibility' '(-f|")fast-math|-Ofast|-funsafe-math' Makefile $llmc
    awk '
    FNR == 1 { most = FILENAME ~ /^test\// ? 600 : 500 }
    FNR == most + 1 { print FILENAME ": more than " most " lines: one concept a file" }
    FILENAME ~ /\.(sh|py)$/ { next }
    /\t/ { print FILENAME ":" FNR ": a tab" }
    /[ \r]$/ { print FILENAME ":" FNR ": a blank at the end of the line" }
    length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns" }' $all
}

# Of a clone only what is tracked counts; elsewhere what is there, but for what make leaves.
top_level() {
    if [ -e .git ]; then git ls-files | sed 's|/.*||' | sort -u; else ls; fi
}

check_top_level() {
    top_level | while read -r name; do
        case $name in
        .* | train_gpt2.c | train_gpt2.cu | llmc | dev | test | Makefile | README.md | LICENSE) ;;
        build | out | data | train_gpt2 | train_gpt2cu | train_gpt2emu) [ ! -e .git ] || echo "$name: is made, not kept" ;;
        *) echo "$name: does not belong at the top level" ;;
        esac
    done
}

# Documents name code as `file:function`: both must be there.
check_names() {
    cat README.md dev/*.md 2>/dev/null | grep -oE '`[a-z0-9_/]+[.](c|h|cu|cuh):[a-z0-9_]+`' | tr -d '\140' | sort -u |
        while IFS=: read -r file name; do
            if [ ! -f "$file" ]; then
                echo "$file:$name: is named by a document, but the file does not exist"
            elif ! grep -qE "^[a-zA-Z_].*[ *]$name\\(" "$file"; then
                echo "$file:$name: is named by a document, but the file defines no such function"
            fi
        done
}

# A reader finds every file: README.md, dev/*.md or a comment of another file names it. A file
# is named also by naming its header, or what implements it.
check_reading_order() {
    find llmc train_gpt2.* README.md dev -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.md' | sort |
        xargs awk '
        FNR == 1 { file = FILENAME; sub(/.*\//, "", file); if (FILENAME ~ /^(llmc|train)/) files[file] = FILENAME }
        /^[ \t]*#[ \t]*include/ { next }
        {
            line = $0
            while (match(line, /[A-Za-z0-9_]+\.(cuh|cu|c|h)/)) {
                name = substr(line, RSTART, RLENGTH)
                if (name != file) named[name] = 1
                line = substr(line, RSTART + RLENGTH)
            }
        }
        END {
            for (name in files) {
                partner = name
                if (!sub(/\.h$/, ".c", partner)) sub(/\.c$/, ".h", partner)
                if (name ~ /\.c$/ && partner in files) continue # its header leads to it
                if (!(name in named) && !(partner in named))
                    print files[name] ": no comment of another file and no document names it"
            }
        }' | sort
}

found=$(check_includes; check_texts; check_names; check_reading_order; check_top_level)
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    echo "lint: $(printf '%s\n' "$found" | wc -l | tr -d ' ') found"
    exit 1
fi
echo "lint: $(includes | wc -l | tr -d ' ') includes point one way; nothing found"
