#!/bin/sh
# man_page.sh PROGRAM: the program's manual page (man 1), made of its own --help and --version.
program=$1
version=$("$program" --version | head -n 1) || exit 1
help=$("$program" --help) || exit 1
cat <<END
.TH TRAIN_GPT2 1 "" "$version"
.SH NAME
train_gpt2 \\- trains a GPT-2; the run is the same run however it is split
.SH OPTIONS
.nf
END
printf '%s\n' "$help" | sed 's/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/'
cat <<END
.fi
.SH EXIT STATUS
0 done, 1 failure while running, 2 usage, 3 bad input file, 4 numbers that are not finite, 75 stopped on request
and resumable.
.SH SEE ALSO
README.md and LICENSE, beside each other in share/doc/train_gpt2.
END
