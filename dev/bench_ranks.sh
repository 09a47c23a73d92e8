#!/bin/sh
# bench_ranks.sh [ROUNDS [TOKENS_A_ROW]]: one rank with two threads against two ranks with one, GPT-2 124M,
# two micro-batches of 4 sequences an update; and exact sums against plain ones. Machines are shared: what is compared
# alternates, and the median of the rounds' ratios counts. Needs two cores and, for ranks, Open MPI.
bench=${BUILD:-build}/bench_ranks rounds=${1:-3} tokens=${2:-64}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for round in $(seq "$rounds"); do
    "$bench" 2 "$tokens" || exit 1
    ! command -v mpirun >/dev/null 2>&1 || mpirun -np 2 "$bench" 1 "$tokens" || exit 1
done | awk -v tokens="$tokens" '
    function median(values, count,    i, j, x) {
        for (i = 2; i <= count; i++) {
            x = values[i]
            for (j = i - 1; j >= 1 && values[j] > x; j--) values[j + 1] = values[j]
            values[j + 1] = x
        }
        return values[int((count + 1) / 2)]
    }
    $1 == 1 { n++; one[n] = $2; cost[n] = $2 / $3 }
    $1 == 2 { m++; two[m] = $2; ratio[m] = $2 / one[n]; share[m] = $4 }
    END {
        printf "GPT-2 124M, updates of 2 micro-batches of 4 sequences of %d tokens, median of %d rounds\n", tokens, n
        printf "  exact sums take        %8.3f times as long as plain ones (one rank)\n", median(cost, n)
        printf "  1 rank, 2 threads      %8.1f ms\n", median(one, n)
        if (!m) { print "  2 ranks                no Open MPI"; exit }
        printf "  2 ranks, 1 thread each %8.1f ms, %.3f times; %.1f %% of it sum over ranks and waiting\n",
            median(two, m), median(ratio, m), median(share, m)
    }'
