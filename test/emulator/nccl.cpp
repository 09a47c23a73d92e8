/* nccl.cpp: all-reduce over MPI, in stream order. The id that rank 0 hands out must reach every rank. */
#ifdef USE_NCCL // where there is MPI
#include "nccl.h"

#include <mpi.h>

struct ncclComm {
    int ranks;
};

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "invalid usage";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    for (int i = 0; i < 128; i++) id->internal[i] = (char)(i * 37 + 11);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    ncclUniqueId expected;
    int size, mine;
    ncclGetUniqueId(&expected);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    if (memcmp(&id, &expected, sizeof id) || ranks != size || rank != mine) return ncclInvalidUsage;
    *comm = new ncclComm{ranks};
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error) {
    *error = ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t, cudaStream_t stream) {
    MPI_Datatype element = type == ncclInt64 ? MPI_INT64_T : MPI_FLOAT;
    emulator_enqueue(stream, [=] {
        const char *at = (const char *)from;
        char *put = (char *)to;
        size_t size = type == ncclInt64 ? 8 : 4;
        for (size_t left = count, some; left; left -= some, at += some * size, put += some * size) {
            some = left < (1u << 30) ? left : 1u << 30;
            MPI_Allreduce(at == put ? MPI_IN_PLACE : at, put, (int)some, element, MPI_SUM,
                          MPI_COMM_WORLD);
        }
    });
    return ncclSuccess;
}

#endif
