#!/bin/sh
# keep_training.sh [-n RANKS[,RANKS...]] [-r RESTARTS] [-w SECONDS] [--] COMMAND...: runs COMMAND, such as
#   dev/keep_training.sh -n 8,6 -r 20 -- mpirun -np RANKS ./train_gpt2 --out run ...
# and starts it again, from the newest intact checkpoint, when a rank died or the run failed. The word RANKS in COMMAND
# becomes the first number of -n; each restart takes the next number, and the last one stays (fewer machines are left:
# the run is the same run on any number of ranks). `--resume auto` is added unless COMMAND has a --resume.
#   -r RESTARTS  how often it may start again in all, 10 unless given
#   -w SECONDS   the pause before a restart, 5 unless given
# Not started again: a run that is done (exit code 0), a usage error (2), a bad input file (3), a loss that is not
# finite (4), and a run that was asked to stop (75, or this script was: INT, TERM, HUP and USR1 are passed on as USR1,
# so that the run saves). The exit code is the last run's; after a stop it is 75 although mpirun says 0 or 1.
set -u

usage() {
    echo "keep_training: $1; usage: keep_training.sh [-n RANKS[,RANKS...]] [-r RESTARTS] [-w SECONDS] [--] COMMAND..." >&2
    exit 2
}
whole() { case $2 in '' | *[!0-9]*) usage "-$1 is \"$2\", expected a whole number" ;; esac; }

list='' most=10 pause=5
while getopts n:r:w: option; do
    case $option in
    n) list=$OPTARG ;;
    r) whole r "$OPTARG" && most=$OPTARG ;;
    w) whole w "$OPTARG" && pause=$OPTARG ;;
    *) usage "an option is not known" ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage "no command"

out='' resume=no ranks=no before=''
for word in "$@"; do
    case $word in --out=*) out=${word#--out=} ;; --resume | --resume=*) resume=yes ;; RANKS) ranks=yes ;; esac
    [ "$before" = --out ] && out=$word
    before=$word
done
[ -n "$out" ] || usage "the command has no --out, so a restart would not find its checkpoints"
[ $resume = yes ] || set -- "$@" --resume auto
case ,$list, in
,,) ;;
*,,* | *,0* | *[!0-9,]*) usage "-n is \"$list\", expected whole numbers from 1 with commas between" ;;
esac
case $list,$ranks in ?*,no | ,yes) usage "-n and the word RANKS in the command belong together" ;; esac

newest() { # the newest checkpoint's name
    for entry in "$out"/step_*; do [ -d "$entry" ] && echo "${entry##*/}"; done | sort | tail -n 1
}

# The command, with RANKS replaced; a word at a time, so that blanks within words stay.
start() {
    turn=$#
    while [ "$turn" -gt 0 ]; do
        word=$1
        shift
        [ "$word" = RANKS ] && word=${list%%,*}
        set -- "$@" "$word"
        turn=$((turn - 1))
    done
    "$@" &
    job=$!
}

asked=no job=''
pass_on() {
    asked=yes
    [ -z "$job" ] || kill -USR1 "$job" 2>/dev/null
}
trap pass_on INT TERM HUP USR1

restarts=0
while :; do
    start "$@"
    [ $asked = no ] || kill -USR1 "$job" 2>/dev/null # asked while it started
    wait "$job"
    code=$?
    while kill -0 "$job" 2>/dev/null; do # a signal to this script ends `wait` before the run has ended
        wait "$job"
        code=$?
    done
    if [ $asked = yes ]; then
        [ $code -eq 0 ] && grep -q '"event":"end".*"done"' "$out/metrics.jsonl" 2>/dev/null && exit 0
        from=$(newest)
        echo "keep_training: stopped on request; newest checkpoint: ${from:-none}" >&2
        exit 75
    fi
    case $code in
    0 | 2 | 3 | 4 | 75) exit $code ;;
    126 | 127)
        echo "keep_training: the command could not be run (exit code $code)" >&2
        exit $code
        ;;
    esac
    if [ "$restarts" -ge "$most" ]; then
        echo "keep_training: exit code $code, and $most restarts were all; given up" >&2
        exit $code
    fi
    restarts=$((restarts + 1))
    case $list in *,*) list=${list#*,} ;; esac
    from=$(newest)
    echo "keep_training: exit code $code, restart $restarts of $most from ${from:-its start}${list:+ with ${list%%,*} ranks}" >&2
    sleep "$pause"
    [ $asked = no ] || exit 75
done
