#!/bin/sh
# cli_data.sh: dev/data.sh gets whole files or none, from a folder and from a web server that breaks off.
. test/cli.sh
if ! command -v curl >/dev/null 2>&1; then
    skip "no curl"
    finish cli_data
    exit
fi
mirror=$dir/mirror
mkdir -p "$mirror/tinyshakespeare" "$mirror/gpt2" "$mirror/fineweb-edu" "$mirror/hellaswag"
get() { DATA_BASE=$base sh dev/data.sh "$@" >"$dir/out"; }
base=file://$mirror

# ---- what there is
check "without a name it lists what there is" sh -c "sh dev/data.sh | grep -q '^  gpt2-xl .*MIT; 6434 MB'"
refuses 2 "there is no 'shakespear'" "a name that is none" get shakespear
refuses 2 "from 1 to 1000" "shards that are none" get fineweb-edu --shards 0
refuses 2 "--shard is not an option" "an option that is none" get fineweb-edu --shard 3
refuses 2 "one word too many" "three words" get hellaswag a b

# ---- files that are not what they should be
printf 'not Shakespeare' >"$mirror/tinyshakespeare/input.txt"
refuses 3 "has 15 bytes, and 1115394 are expected" "a file of another size" get tinyshakespeare "$dir/a"
check "... is not kept" test ! -e "$dir/a/input.txt" -a ! -e "$dir/a/input.txt.part"
printf '{"ind": 1}\n' >"$mirror/hellaswag/hellaswag_val.jsonl"
refuses 3 "SHA-256 of what came is" "a file of other bytes" get hellaswag "$dir/a"
check "... is not kept" test ! -e "$dir/a/hellaswag_val.jsonl" -a ! -e "$dir/a/hellaswag_val.jsonl.part"
refuses 1 "gpt2/model.safetensors is not there" "a source without the file" get gpt2 "$dir/a"
head -c 1115394 /dev/zero >"$mirror/tinyshakespeare/input.txt"
refuses 3 "SHA-256" "a file of the right size with other bytes" get tinyshakespeare "$dir/a"
base=http://127.0.0.1:1
refuses 1 "is there a network?" "no network" get tinyshakespeare "$dir/a"
check "... leaves nothing" test -z "$(ls "$dir/a")"

# ---- shards, whose headers say how long they are
base=file://$mirror
shard() { # FILE TOKENS: an llm.c token shard of zeros
    printf '\210\330\064\001\001\0\0\0' >"$1" # 20240520, version 1
    # shellcheck disable=SC2059 # an octal number for printf
    printf "$(printf '\\%03o\\%03o\\0\\0' $(($2 % 256)) $(($2 / 256)))" >>"$1"
    head -c $((1012 + 2 * $2)) /dev/zero >>"$1"
}
for i in 1 2 3; do shard "$mirror/fineweb-edu/edu_fineweb_train_00000$i.bin" 1000; done
shard "$mirror/fineweb-edu/edu_fineweb_val_000000.bin" 300
check "two shards and one for validation" get fineweb-edu "$dir/shards" --shards 2
check "... are there" cmp "$dir/shards/edu_fineweb_train_000002.bin" "$mirror/fineweb-edu/edu_fineweb_train_000002.bin"
check "... and no other" test "$(ls "$dir/shards" | wc -l)" -eq 3
check "... and said is how to use them" grep -q "^next: ./train_gpt2cu --model gpt2 --data $dir/shards" "$dir/out"
check "one more" get fineweb-edu "$dir/shards" --shards 3
check "... keeps those that are there" sh -c "grep -c 'is there' '$dir/out' | grep -qx 3"
check "the program reads them" "$program" verify "$dir/shards"
head -c 2000 "$dir/shards/edu_fineweb_train_000001.bin" >"$dir/cut" && cp "$dir/cut" "$dir/shards/edu_fineweb_train_000001.bin"
refuses 3 "has 2000 bytes, and 3024 are expected; move it away" "a shard that is cut" get fineweb-edu "$dir/shards" --shards 1
printf '<html>' >"$mirror/fineweb-edu/edu_fineweb_train_000003.bin"
rm -r "$dir/shards"
refuses 3 "does not begin like an llm.c token shard" "a page in place of a shard" get fineweb-edu "$dir/shards" --shards 3
check "... is not kept, the shards before it are" test "$(ls "$dir/shards" | wc -l)" -eq 3

# ---- a web server that breaks off, and one that cannot continue
server() { # CUT
    rm -f "$dir/port"
    "$build/http_server" "$mirror" "$dir/port" "$1" &
    server=$!
    await "$dir/port"
    base=http://127.0.0.1:$(cat "$dir/port")
}
trap 'kill $server 2>/dev/null; leave' EXIT
rm -r "$dir/shards"
for i in 1 2 3; do shard "$mirror/fineweb-edu/edu_fineweb_train_00000$i.bin" $((20000 + i)); done
server 16000
check "a server that breaks off in mid-file" get fineweb-edu "$dir/shards" --shards 3
check "... is asked for the rest" grep -q 'broke off at 32000 bytes; continuing' "$dir/out"
for i in 1 2 3; do
    check "... file $i is whole" cmp "$dir/shards/edu_fineweb_train_00000$i.bin" "$mirror/fineweb-edu/edu_fineweb_train_00000$i.bin"
done
rm "$dir/shards/edu_fineweb_train_000002.bin"
head -c 12345 "$mirror/fineweb-edu/edu_fineweb_train_000002.bin" >"$dir/shards/edu_fineweb_train_000002.bin.part"
check "a download that was killed continues" get fineweb-edu "$dir/shards" --shards 3
check "... where it stopped" grep -q 'broke off at 28345 bytes' "$dir/out"
check "... and is whole" cmp "$dir/shards/edu_fineweb_train_000002.bin" "$mirror/fineweb-edu/edu_fineweb_train_000002.bin"
rm "$dir/shards/edu_fineweb_train_000001.bin"
cp "$mirror/fineweb-edu/edu_fineweb_train_000001.bin" "$dir/shards/edu_fineweb_train_000001.bin.part"
check "a download that was killed at its end" get fineweb-edu "$dir/shards" --shards 3
check "... is whole" cmp "$dir/shards/edu_fineweb_train_000001.bin" "$mirror/fineweb-edu/edu_fineweb_train_000001.bin"
refuses 1 "is not there" "a page that is not there" get gpt2 "$dir/a"
kill $server

server 0
rm "$dir/shards/edu_fineweb_train_000002.bin"
printf 'the wrong beginning' >"$dir/shards/edu_fineweb_train_000002.bin.part"
check "a server that knows no ranges sends all again" get fineweb-edu "$dir/shards" --shards 3
check "... and the file is whole" cmp "$dir/shards/edu_fineweb_train_000002.bin" "$mirror/fineweb-edu/edu_fineweb_train_000002.bin"
check "nothing half is left" test -z "$(ls "$dir/shards" | grep part)"

# ---- without curl
mkdir "$dir/bin"
for tool in sh dirname mkdir df du awk cut; do ln -s "$(command -v $tool)" "$dir/bin/$tool"; done
refuses 1 "needs curl" "no curl" env PATH="$dir/bin" sh dev/data.sh hellaswag "$dir/a"

# ---- Parquet
# Where pyarrow is not installed, a stand-in for the part of it that the script calls: its tables are JSON.
stand_in() {
    mkdir -p "$dir/modules/pyarrow"
    cat >"$dir/modules/pyarrow/__init__.py" <<'END'
class ArrowInvalid(ValueError):
    pass
def table(columns):
    return columns
class Field:
    def __init__(self, values):
        self.type = "string" if isinstance(values[0], str) else "int64"
class Batch:
    def __init__(self, values):
        self.values = values
    def column(self, n):
        return self
    def to_pylist(self):
        return self.values
END
    cat >"$dir/modules/pyarrow/parquet.py" <<'END'
import json
from . import ArrowInvalid, Batch, Field
def write_table(columns, path):
    with open(path, "w") as file:
        json.dump(columns, file)
class ParquetFile:
    def __init__(self, path):
        with open(path) as file:
            text = file.read()
        if not text.startswith("{"):
            raise ArrowInvalid("Parquet magic bytes not found\nin the footer")
        self.columns = json.loads(text)
        self.names = list(self.columns)
        self.schema_arrow = self
    def field(self, name):
        return Field(self.columns[name])
    def iter_batches(self, columns, batch_size):
        values = self.columns[columns[0]]
        for first in range(0, len(values), 3):
            yield Batch(values[first : first + 3])
END
}
if command -v python3 >/dev/null; then
    python3 -c 'import pyarrow.parquet' 2>/dev/null || { stand_in; export PYTHONPATH="$dir/modules"; }
    python3 -c "
import pyarrow, pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.table({'text': ['a\\nb', 'é', None, ''], 'n': [1, 2, 3, 4]}), '$dir/t.parquet')"
    printf '{"text": "a\\nb"}\n{"text": "é"}\n{"text": ""}\n' >"$dir/wanted"
    check "Parquet becomes JSON lines" sh -c "python3 dev/parquet_text.py '$dir/t.parquet' | cmp - '$dir/wanted'"
    refuses 1 "column n is int64" "a column of numbers" python3 dev/parquet_text.py "$dir/t.parquet" --column n
    refuses 1 "there are text, n" "a column that is not there" python3 dev/parquet_text.py "$dir/t.parquet" --column txt
    echo "not a table, but some text" >"$dir/b.parquet"
    refuses 1 "b.parquet: Parquet magic bytes not found" "a file that is not Parquet" \
        python3 dev/parquet_text.py "$dir/b.parquet"
    mkdir -p "$dir/no_pyarrow"
    echo 'raise ImportError' >"$dir/no_pyarrow/pyarrow.py"
    refuses 1 "pip install pyarrow" "pyarrow is missing" \
        env PYTHONPATH="$dir/no_pyarrow" python3 dev/parquet_text.py "$dir/t.parquet"
else
    skip "python3 is not installed: dev/parquet_text.py"
fi
finish cli_data
