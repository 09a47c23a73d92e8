#!/bin/sh
# data.sh NAME [DIR] [--shards N]: gets data or weights: prints what they are first, and leaves only complete files.
#
#   dev/data.sh                        what there is
#   dev/data.sh tinyshakespeare        into data/tinyshakespeare
#   dev/data.sh fineweb-edu --shards 10          the first 10 shards, a billion tokens
#   dev/data.sh gpt2 /models/gpt2      somewhere else
#
# A file is loaded as FILE.part; a download that broke off continues where it stopped, within this call and
# when it is called again. It gets its name when its size and, where one is recorded, its SHA-256 are right.
# Files that are there are checked by size and kept. Needs curl.
#
# DATA_BASE=file:///mirror dev/data.sh NAME takes every file from file:///mirror/NAME/FILE instead.
set -u

hf=https://huggingface.co
edu=$hf/datasets/karpathy/fineweb-edu-100B-gpt2-token-shards/resolve/main
stories=$hf/datasets/roneneldan/TinyStories/resolve/main
github=https://raw.githubusercontent.com

# ---- the sources: NAME, FILE, bytes (-: as the server says, or a shard's own header), SHA-256 (or -), URL
sources() {
    cat <<-TABLE
	tinyshakespeare input.txt 1115394 86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed $github/karpathy/char-rnn/master/data/tinyshakespeare/input.txt
	tinystories tinystories_train.txt 2227753162 6418d412de72888f52b5142c761ac21a582f7d1166f0bfbdb5f03ccfdec90443 $stories/TinyStoriesV2-GPT4-train.txt
	tinystories tinystories_val.txt 22502601 6874bae9a4c1a4e7edcf0e53b86c17817e9cf881fc75ff2368da457b80c0585d $stories/TinyStoriesV2-GPT4-valid.txt
	hellaswag hellaswag_val.jsonl - 0aa3b88843990f3f10a97b9575c94d7b71fb2205240ba04ae4884d9e9c992588 $github/rowanz/hellaswag/master/data/hellaswag_val.jsonl
	gpt2 model.safetensors 548105171 248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707 $hf/openai-community/gpt2/resolve/main/model.safetensors
	TABLE
    for model in gpt2 gpt2-medium gpt2-large gpt2-xl; do
        from=$hf/openai-community/$model/resolve/main
        [ $model = gpt2 ] || echo $model model.safetensors - - "$from/model.safetensors"
        echo $model config.json - - "$from/config.json"
        echo $model vocab.json 1042301 196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783 "$from/vocab.json"
        echo $model merges.txt 456318 1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5 "$from/merges.txt"
    done
    echo fineweb-edu edu_fineweb_val_000000.bin - - $edu/edu_fineweb_val_000000.bin
    shard=1
    while [ $shard -le "$shards" ]; do
        file=$(printf 'edu_fineweb_train_%06d.bin' $shard)
        echo fineweb-edu "$file" - - "$edu/$file"
        shard=$((shard + 1))
    done
}

# What a set is, its licence, about how many bytes, and the command it is for.
describe() {
    what='' licence='' use=''
    case $1 in
    tinyshakespeare)
        what='40,000 lines of Shakespeare, 1.1 MB of text' licence='public domain' about=1115394
        use="./train_gpt2 --data $2/input.txt" ;;
    tinystories)
        what='stories in the words of small children, written by GPT-4, 2.3 GB of text (Eldan and Li 2023)'
        licence='CDLA-Sharing-1.0' about=2250255763
        use="./train_gpt2 tokenize $2/tinystories_train.txt --out $2/shards" ;;
    fineweb-edu)
        what="educational web pages as GPT-2 tokens, $shards shards of 100M tokens and one for validation"
        licence="ODC-By 1.0, and Common Crawl's terms of use" about=$(((shards + 1) * 200001024))
        use="./train_gpt2cu --model gpt2 --data $2" ;;
    hellaswag)
        what='10,042 beginnings with four endings each, one of them true (Zellers et al. 2019)'
        licence='MIT' about=12246618
        use="./train_gpt2 eval --model PATH --hellaswag $2/hellaswag_val.jsonl" ;;
    gpt2) what="OpenAI's weights of GPT-2, 124M parameters" about=549607820 ;;
    gpt2-medium) what="OpenAI's weights of GPT-2 medium, 355M parameters" about=1521500000 ;;
    gpt2-large) what="OpenAI's weights of GPT-2 large, 774M parameters" about=3248700000 ;;
    gpt2-xl) what="OpenAI's weights of GPT-2 XL, 1558M parameters" about=6433400000 ;;
    *) return 1 ;;
    esac
    [ -n "$licence" ] || licence='MIT' use="./train_gpt2 sample --model $2"
}

fail() { # CODE WORDS
    code=$1
    shift
    echo "data.sh: $*" >&2
    exit "$code"
}

mega() { echo "$((($1 + 999999) / 1000000)) MB"; }

usage() { # CODE
    echo 'dev/data.sh NAME [DIR] [--shards N]   (DIR: data/NAME if not given; N: of fineweb-edu, 1 to 1000, else 100)'
    for set in tinyshakespeare tinystories fineweb-edu hellaswag gpt2 gpt2-medium gpt2-large gpt2-xl; do
        describe $set data/$set
        printf '  %-16s %s; %s; %s\n' $set "$what" "$licence" "$(mega "$about")"
    done
    exit "$1"
}

# ---- one file ------------------------------------------------------------------------------------

bytes_of() { # FILE: 0 where there is none
    if [ -e "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi
}

sha256() { # FILE
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        echo -
    fi
}

# The size that the server names, or nothing.
server_bytes() { # URL
    head=$(curl --silent --fail --location --head --max-time 60 "$1" 2>/dev/null) || return 0
    echo "$head" | tr -d '\r' | sed -n 's/^[Cc]ontent-[Ll]ength: *\([1-9][0-9]*\)$/\1/p' | tail -n 1
}

# The size that an llm.c shard's own header gives: 1024 bytes and two for each token. Nothing where the
# file does not begin like one.
shard_bytes() { # FILE
    head -c 12 "$1" | od -A n -t u1 | tr -s '\n' ' ' | {
        read -r a b c d e f g h i j k l
        [ "$a $b $c $d $e $f $g $h" = '136 216 52 1 1 0 0 0' ] || return # 20240520, version 1
        echo $((1024 + 2 * (i + 256 * j + 65536 * k + 16777216 * l)))
    }
}

# Whether FILE has the wanted size; says why not. WANTED: bytes or -.
right_size() { # FILE WANTED
    wanted=$2
    case ${1%.part} in *.bin)
        wanted=$(shard_bytes "$1")
        [ -n "$wanted" ] || { why='does not begin like an llm.c token shard'; return 1; }
        ;;
    esac
    size=$(bytes_of "$1")
    [ "$wanted" = - ] || [ "$size" -eq "$wanted" ] || { why="has $size bytes, and $wanted are expected"; return 1; }
}

# The meaning of curl's exit code, as a message.
reason() { # CODE URL
    case $1 in
    6 | 7 | 28 | 35 | 56) echo "cannot reach $2 (curl: $1): is there a network? A mirror may be named with DATA_BASE" ;;
    22 | 37 | 78) echo "$2 is not there (curl: $1); another source may be named with DATA_BASE" ;;
    23) echo "cannot write (curl: 23): is the disk full?" ;;
    *) echo "$2: curl ended with code $1" ;;
    esac
}

# Loads URL into FILE.part from where that ends. Continues after an interruption as long as each try adds
# something, and begins from 0 once where the server cannot continue.
load() { # URL FILE WANTED
    part=$2.part from=-1
    while :; do
        before=$(bytes_of "$part")
        if [ "$3" != - ] && [ "$before" -ge "$3" ]; then return; fi
        [ "$before" -gt "$from" ] || fail 1 "$(reason "$got" "$1"); $before bytes are kept in $part: call again to continue"
        from=$before
        curl --fail --location $show --connect-timeout 20 --speed-time 60 --speed-limit 1 \
            --continue-at - --output "$part" "$1"
        got=$?
        case $got in
        0) return ;;
        18 | 28 | 52 | 56 | 92) echo "  broke off at $(bytes_of "$part") bytes; continuing" ;;
        33 | 36) # no ranges there
            rm -f "$part"
            from=-1 ;;
        *)
            [ "$(bytes_of "$part")" -gt 0 ] || rm -f "$part"
            fail 1 "$(reason "$got" "$1")" ;;
        esac
    done
}

fetch() { # FILE BYTES SHA256 URL
    target=$dir/$1 url=$4 wanted_bytes=$2
    [ -z "${DATA_BASE:-}" ] || url=${DATA_BASE%/}/$name/$1
    if [ -e "$target" ]; then
        right_size "$target" "$2" || fail 3 "$target $why; move it away to get it again"
        echo "  $target is there"
        return
    fi
    [ "$2" != - ] || wanted_bytes=$(server_bytes "$url")
    load "$url" "$target" "${wanted_bytes:--}"
    right_size "$target.part" "${wanted_bytes:--}" || {
        rm -f "$target.part"
        fail 3 "$url: what came $why; it was removed"
    }
    if [ "$3" != - ]; then
        sum=$(sha256 "$target.part")
        [ "$sum" = "$3" ] || [ "$sum" = - ] || {
            rm -f "$target.part"
            fail 3 "$url: SHA-256 of what came is $sum, and $3 is expected: another version, or damage; it was removed"
        }
    fi
    mv "$target.part" "$target" || exit 1
    echo "  $target: $(bytes_of "$target") bytes"
}

# ---- the command line ----------------------------------------------------------------------------

name='' dir='' shards=100
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage 0 ;;
    --shards | --shards=*)
        value=${1#--shards=}
        [ "$1" != --shards ] || { shift; value=${1:-}; }
        case $value in '' | *[!0-9]* | ?????*) value=0 ;; esac
        if [ "$value" -lt 1 ] || [ "$value" -gt 1000 ]; then fail 2 '--shards takes a whole number from 1 to 1000'; fi
        shards=$value ;;
    -*) fail 2 "$1 is not an option; the only option is --shards N" ;;
    *)
        if [ -z "$name" ]; then name=$1
        elif [ -z "$dir" ]; then dir=$1
        else fail 2 "'$1' is one word too many; there are NAME and DIR"
        fi ;;
    esac
    shift
done
[ -n "$name" ] || usage 0
dir=${dir:-data/$name}
describe "$name" "$dir" || fail 2 "there is no '$name'; dev/data.sh alone lists what there is"
command -v curl >/dev/null 2>&1 || fail 1 'needs curl, which is not installed'

echo "$name: $what"
echo "licence: $licence; about $(mega "$about"), into $dir"
mkdir -p "$dir" || fail 1 "cannot make the directory $dir"
room=$(df -Pk "$dir" | awk 'NR == 2 { print $4 }')
have=$(du -sk "$dir" | cut -f 1)
[ $((room + have)) -ge $((about / 1024)) ] || fail 1 "$dir has room for $((room / 1024)) MB; about $(mega "$about") are needed"

show=--silent
[ ! -t 2 ] || show=--progress-bar
sources | awk -v name="$name" '$1 == name' | {
    while read -r _ file bytes sum url; do
        fetch "$file" "$bytes" "$sum" "$url" || exit $?
    done
} || exit $?
echo "next: $use"
