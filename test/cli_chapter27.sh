#!/bin/sh
# cli_chapter27.sh: `make chapter27` prints every number of the chapter beside the program's own. Each line
# below is a number as the chapter has it and what stands before it on its line.
. test/cli.sh
check "all statements of chapter 27 hold" output "$dir/chapter" "$build/test_gpt2_double" --chapter27
check "... more than 35 of them" awk '/^chapter 27: [0-9]+ statements hold, 0 do not$/ { n = $3 } END { exit !(n > 35) }' "$dir/chapter"

# Whether a line "WHAT ... chapter: NUMBER ... here: VALUE" is there.
shows() { # WHAT NUMBER VALUE
    grep -F -- "$1" "$dir/chapter" | awk -v number="$2" -v value="$3" '
        { split($0, half, "chapter: "); split(half[2], part, / +here: /) }
        part[1] == number && (value == "" || part[2] == value) { found = 1 }
        END { exit !found }'
}

check "27.1: beta1" shows "beta1" 0.9 0.9
check "27.1: beta2" shows "beta2" 0.95 0.95
check "27.1: epsilon" shows "epsilon" 1e-8 1e-08
check "27.1: weight decay" shows "weight decay" 0.1 0.1
check "27.1: the decay groups of GPT-2 124M" shows "parameters that decay, GPT-2 124M" - 124318464
check "27.1: the decay groups with bytes as tokens" shows "parameters that decay, with bytes" - 85917696
check "27.2: the largest rate" shows "largest learning rate" 6e-4 0.0006
check "27.2: warm-up" shows "updates of warm-up" 715 715
check "27.2: updates" shows "updates in all" 19073 19073
check "27.2: the last update's rate is above the floor" shows "rate of the last update" "near the floor" 6.0000003953509e-05
check "27.2: W=4, S=20, i=0" shows "rate at i = 0" 0.00015 0.00015
check "27.2: i=3" shows "rate at i = 3" 0.0006 0.0006
check "27.2: i=4" shows "rate at i = 4" 0.0006 0.0006
check "27.2: i=12" shows "rate at i = 12" 0.00033 0.00033
check "27.2: i=20" shows "rate at i = 20" 0.00006 0.0000600000
check "27.2: i=21" shows "rate at i = 21" 0.00006 0.0000600000
check "27.3: 2.2" shows "every token weighs 1/N" 2.2 2.2
check "27.3: the wrong 2" shows "mean of the two means" 2 2
check "27.3: 5.55e-17" shows "largest error of the gradients" 5.55e-17 ""
check "27.3: the wrong 0.052799" shows "largest error of the gradients" 0.052799 ""
check "27.3: the MLP's 1.67e-16" shows "largest error of the gradients" 1.67e-16 ""
check "27.4: 0.6" shows "first element after clipping" 0.6 0.5999999
check "27.4: 0.8" shows "second element" 0.8 0.7999998
check "27.5: 65536 tokens a forward" shows "tokens of one forward" 65536 65536
check "27.5: K = 8" shows "K of one process" 8 8
check "27.5: K = 1" shows "K of each of 8 processes" 1 1
check "27.5: 524288" shows "tokens of one update" 524288 524288
check "exercise 1: 131072" shows "B T K R" 131072 131072
check "exercise 1: K = 16" shows "K, when 131072" 16 16
check "exercise 2: 1/3 and 2/3" shows "weights 1/3 and 2/3" 0 ""
check "exercise 3" shows "clipped gradients" "not 0" ""
check "exercise 4" shows "when they are forgotten" "not 0" ""
finish cli_chapter27
