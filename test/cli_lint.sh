#!/bin/sh
# cli_lint.sh: dev/lint.sh passes this source, and finds each fault that is planted in a copy of it.
. test/cli.sh

check "this source breaks no rule" sh dev/lint.sh

# A fresh copy of the source in $dir/copy, without git and what make left.
copy() {
    rm -rf "$dir/copy" && mkdir "$dir/copy"
    tar -cf - --exclude '*.o' --exclude test/expectations train_gpt2.* llmc dev test Makefile README.md LICENSE |
        tar -xf - -C "$dir/copy"
}
finds() { # MESSAGE: lint fails on the copy, and names the fault
    sh dev/lint.sh "$dir/copy" >"$dir/found" 2>&1 && return 1
    cat "$dir/found" # for the report, when this fails
    grep -qF -- "$1" "$dir/found"
}
plant() { # FILE LINE MESSAGE: one line more in one file
    copy
    printf '%s\n' "$2" >>"$dir/copy/$1"
    check "found in $1: $2" finds "$3"
}

copy
check "a copy without git passes too" sh dev/lint.sh "$dir/copy"

plant llmc/base/error.c '#include "../files/io.h"' 'layer base does not rest on layer files'
plant llmc/data/stream.c '#include "../model/gpt2.h"' 'layer data does not rest on layer model'
plant llmc/model/gpt2.c '  #  include "../data/stream.h"' 'layer model does not rest on layer data'
plant llmc/model/gpt2.c '#include "../cpu/cpu.h"' 'layer model does not rest on layer cpu'
plant llmc/plain/plain.h '#include "../cpu/vec.h"' 'layer plain does not rest on layer cpu'
plant llmc/cpu/cpu.h '#include "../model/gpt2.h"' 'layer cpu does not rest on layer model'
plant llmc/cpu/cpu.h '#include "../cpu/../log/log.h"' 'layer cpu does not rest on layer log'
plant llmc/ops.h '#include "optimizer/adamw.h"' 'layer ops does not rest on layer optimizer'
plant llmc/files/json_write.c '#include "../settings/options.h"' 'layer files does not rest on layer settings'
plant train_gpt2.cu '#include "llmc/train/trainer.h"' 'layer cuda does not rest on layer train'
plant llmc/newcomer.c '#include "base/error.h"' 'llmc/newcomer.c: is in no layer'
plant llmc/base/error.c '#include "../newcomer.h"' '"../newcomer.h": is in no layer'
copy
echo '#include "number.h"' >>"$dir/copy/llmc/base/utf8.h"
echo '#include "utf8.h"' >>"$dir/copy/llmc/base/number.h"
check "found: two headers that include each other" finds 'utf8.h: includes itself in a circle'

plant llmc/model/gpt2.c '#ifdef __CUDACC__' 'must not know the device'
plant train_gpt2.c '#if defined(USE_CUDA)' 'must not know the device'
plant llmc/model/gpt2.c '    assert(x == 1);' 'assert does not'
plant llmc/cpu/gemm.c '#pragma GCC optimize("fast-math")' 'breaks NaN'
plant Makefile 'flags += -O2 -ffast-math' 'breaks NaN'
plant Makefile 'OPTIMIZE = -Ofast' 'breaks NaN'
plant llmc/model/gpt2.c "$(printf '\tint tab;')" 'a tab'
plant llmc/model/gpt2.c 'int blank; ' 'a blank at the end'
plant llmc/model/gpt2.c "// $(printf '%0120d' 0)" '123 columns'
plant README.md '`llmc/model/gpt2.c:gpt2_nothing`' 'gpt2.c:gpt2_nothing: is named by a document, but the file defines no such function'
plant dev/chapter27.zh.md '`llmc/nowhere.c:main`' 'llmc/nowhere.c:main: is named by a document, but the file does not exist'
copy
yes 'int line;' | head -n 501 >"$dir/copy/llmc/base/rng.c"
check "found: a file of 501 lines" finds 'llmc/base/rng.c: more than 500 lines'
copy
echo '/* lonely.h: a file that nothing leads to. */' >"$dir/copy/llmc/base/lonely.h"
check "found: a file that no other names" finds 'llmc/base/lonely.h: no comment of another file and no document names it'
copy
touch "$dir/copy/notes.txt"
check "found: a stray file at the top level" finds 'notes.txt: does not belong'

# What is allowed stays allowed.
allows() { # FILE LINE
    copy
    printf '%s\n' "$2" >>"$dir/copy/$1"
    check "allowed in $1: $2" sh dev/lint.sh "$dir/copy"
}
allows llmc/model/gpt2.c '// unlike CUDA, no assert(here) and no -ffast-math'
allows llmc/model/gpt2.c '_Static_assert(sizeof(int) == 4, "int");'
allows llmc/ops.h '#ifdef __cplusplus'
allows llmc/log/log.c '#include <unistd.h> /* a system header is none of ours */'

finish cli_lint
