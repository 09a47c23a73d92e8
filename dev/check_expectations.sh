#!/bin/sh
# check_expectations.sh: records the expectations again, elsewhere, and compares byte for byte.
# PYTHON names an interpreter that has PyTorch 2.6.0. Not part of the tests, which need no Python.
cd "$(dirname "$0")/.." || exit 1
again=$(mktemp -d) || exit 1
trap 'rm -rf "$again"' EXIT
${PYTHON:-python3} dev/record_expectations.py "$again" || exit 1
cp test/expectations/README.md "$again"
if diff -rq test/expectations "$again"; then
    echo "test/expectations: $(ls test/expectations/*.txt | wc -l) files, the same bytes again"
else
    echo "test/expectations: recorded differently (differing files above)"
    exit 1
fi
