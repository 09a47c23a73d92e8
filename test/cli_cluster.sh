#!/bin/sh
# cli_cluster.sh: several machines. Two network namespaces with host names, process numbers and /etc/hosts of their own
# stand for machines "alpha" and "beta"; mpirun on alpha starts ranks on beta through an agent script, as it would through
# ssh. The run is the undisturbed run, also over slow links and with a slow machine, or it ends
# with one line that names the lost rank. All traffic stays between two addresses that exist only here.
# Needs root, `ip` and Linux; elsewhere it is skipped.
. test/cli.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root
export OMP_WAIT_POLICY=passive                                   # more threads than cores

run="--layers 1 --heads 2 --channels 32 --seq-len 16 --data $dir/text --threads 1 --batch 2 --total-batch 192 --val-every 0"
run="$run --sample-every 0 --log-every 0"
head -c 4000 README.md >"$dir/text"
# shellcheck disable=SC2086 # a list
check "the run on one machine" says "trained 30 updates" "$program" $run --steps 30 --out "$dir/straight"

if ! has_ranks; then
    skip "no Open MPI"
    finish cli_cluster
    exit
fi

# ---- two machines
alpha=train_gpt2_a$$ beta=train_gpt2_b$$ # namespaces
machines_end() {
    for machine in $alpha $beta; do
        # shellcheck disable=SC2046 # a list of process ids
        kill -KILL $(ip netns pids $machine 2>/dev/null) 2>/dev/null
        ip netns del $machine 2>/dev/null
    done
}
trap 'machines_end; leave' EXIT
machines_begin() {
    [ "$(id -u)" -eq 0 ] && command -v ip >/dev/null && command -v unshare >/dev/null && unshare -ump -f true &&
        ip netns add $alpha && ip netns add $beta &&
        ip -n $alpha link add name eth0 mtu 1500 type veth peer name eth0 mtu 1500 netns $beta &&
        ip -n $alpha addr add 192.0.2.1/24 dev eth0 && ip -n $beta addr add 192.0.2.2/24 dev eth0 &&
        for machine in $alpha $beta; do
            ip -n $machine link set lo up && ip -n $machine link set eth0 up &&
                ip netns exec $machine sh -c 'echo 4 >/proc/sys/net/ipv4/tcp_retries2' || return 1
        done
}
if ! machines_begin >"$dir/said" 2>&1; then
    [ -z "${CLI_RANKS:-}" ] && skip "machines of network namespaces: not root, or no ip: $(tail -n 1 "$dir/said")"
    finish cli_cluster
    exit
fi
printf '127.0.0.1 localhost\n192.0.2.1 alpha\n192.0.2.2 beta\n' >"$dir/hosts"
# on MACHINE COMMAND: COMMAND runs there. Its processes have numbers of their own, and end with it.
cat >"$dir/on" <<END
#!/bin/sh
machine=\$1
shift
case \$machine in alpha) space=$alpha ;; *) space=$beta ;; esac
exec ip netns exec \$space unshare -ump -f --mount-proc --kill-child sh -c \
    "hostname \$machine; mount --bind '$dir/hosts' /etc/hosts; \$*"
END
chmod +x "$dir/on"
hosts="--mca plm_rsh_agent $dir/on --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca btl tcp,vader,self"
# mpirun waits for its daemon on a machine that is gone until the connection fails: while it is idle, by the keep-alive
# (which Open MPI sends after 5 minutes), else after tcp_retries2 repetitions (which take 15 minutes by default).
keepalive="--mca oob_tcp_keepalive_time 4 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 5"
hosts="mpirun $hosts $keepalive --mca pml ob1 --mca mpi_yield_when_idle 1 --host alpha:2,beta:1 -np 3"
job() { # NAME OPTIONS...: the run on three ranks, two on alpha and one on beta; what it says in $dir/job
    name=$1
    shift
    timeout -s KILL 60 "$dir/on" alpha "$hosts $program $run --out $dir/$name $*" >"$dir/job" 2>&1 </dev/null
}
identical() { # NAME: checkpoint and records are those of the run on one machine
    grep -q "trained 30 updates" "$dir/job" && timeless "$dir/straight/metrics.jsonl" >"$dir/a" &&
        timeless "$dir/$1/metrics.jsonl" >"$dir/b" && same_files "$dir/a" "$dir/b" &&
        same_files "$dir/straight/step_00000030/model.safetensors" "$dir/$1/step_00000030/model.safetensors" &&
        same_files "$dir/straight/step_00000030/optimizer.safetensors" "$dir/$1/step_00000030/optimizer.safetensors"
}
check "mpirun reaches two machines" output "$dir/names" "$dir/on" alpha "$hosts hostname"
check "... that have names of their own" same "$(grep -x 'alpha\|beta' "$dir/names" | sort | tr '\n' ' ')" "alpha alpha beta "
sent() { cat "/sys/class/net/$1" 2>/dev/null; }
at "a run on two machines"
job two --steps 30
check "ranks on two machines, MTU 1500: the same run" identical two
carried=$(ip -n $beta -s link show eth0 | awk '/TX:/ { getline; print $1 }')
check "... whose gradients went over the link" less 30*171776/2 "$carried"

# ---- slow and lossy links
shape_link() { # tc's words: on both ends of the link
    for machine in $alpha $beta; do tc -n $machine qdisc replace dev eth0 root "$@" || return 1; done
}
at "a slow link"
if shape_link tbf rate 20mbit burst 16kb latency 400ms >"$dir/said" 2>&1; then
    job slow --steps 30
    check "a link of 20 Mbit/s: the same run" identical slow
else
    skip "a slow link: $(tail -n 1 "$dir/said")"
fi
at "a lossy link"
# Where the kernel has no netem, packets are lost because a queue has room for four of them only.
netem="netem rate 100mbit delay 1ms loss 1%" short="tbf rate 10mbit burst 2kb limit 6kb"
# shellcheck disable=SC2086 # lists of words
if shape_link $netem >/dev/null 2>&1 || shape_link $short >"$dir/said" 2>&1; then
    job lossy --steps 30
    check "a link that loses packets: the same run" identical lossy
    check "... and it did lose some" sh -c "tc -n $alpha -s qdisc show dev eth0 | grep -o 'dropped [1-9][0-9]*'"
else
    skip "a link that loses packets: $(tail -n 1 "$dir/said")"
fi
for machine in $alpha $beta; do tc -n $machine qdisc del dev eth0 root 2>/dev/null; done

# ---- a machine that is slow, and one that is cut off
# begin NAME OPTIONS...: a run in the background, when it has computed updates
begin() {
    name=$1
    shift
    timeout -s KILL 60 "$dir/on" alpha "$hosts $program $run --out $dir/$name $*" >"$dir/job" 2>&1 </dev/null &
    job=$!
    turns=0
    until grep -q '"event":"train"' "$dir/$name/metrics.jsonl" 2>/dev/null || [ $turns -gt 300 ] || ! kill -0 $job 2>/dev/null; do
        sleep 0.1
        turns=$((turns + 1))
    done
}
trainer_on() { # NAMESPACE: the process of a rank there
    for process in $(ip netns pids "$1"); do
        [ "$(cat "/proc/$process/comm" 2>/dev/null)" = train_gpt2 ] && echo "$process" && return
    done
}
at "a slow machine"
begin slower --steps 30
process=$(trainer_on $beta)
for turn in 1 2 3; do kill -STOP "$process" 2>/dev/null && sleep 0.7 && kill -CONT "$process" 2>/dev/null; done
wait $job
check "a machine that stands still again and again: the same run" identical slower

at "a machine that is cut off"
begin cut --steps 1000000 --rank-timeout 1
check "a run on two machines is under way" grep -q '"event":"train"' "$dir/cut/metrics.jsonl"
sleep 2 # by then each rank has heard its neighbour; of one that was never heard only MPI can notice the end
ip -n $beta link set eth0 down
wait $job
code=$?
check "... which ends with 1 when a machine is cut off in the middle of an update" test $code -eq 1
check "... and one line that names its rank" test "$(grep -c '^train_gpt2: rank [0-2]: rank [0-2] (process [0-9]* on .*) has sent no heartbeat' "$dir/job")" -eq 1
gone() { # all processes on both machines are gone, within 20 s
    turns=0
    until [ -z "$(ip netns pids $alpha)$(ip netns pids $beta)" ]; do
        turns=$((turns + 1))
        [ $turns -le 100 ] || return 1
        sleep 0.2
    done
}
check "... and nothing is left running on either machine" gone
ip -n $beta link set eth0 up

at "a rank that dies on another machine"
begin killed --steps 1000000 --rank-timeout 2
process=$(trainer_on $beta)
check "a run on two machines is under way again" test -n "$process"
kill -KILL "$process" 2>/dev/null
wait $job
code=$?
check "... kill -9 of the rank on beta ends it" test $code -ne 0 -a $code -ne 124
check "... and a line names rank and machine" grep -q 'rank 2 .*on node beta exited on signal 9\|rank 2 (process [0-9]* on beta)' "$dir/job"
check "... nothing is left running" gone
finish cli_cluster
