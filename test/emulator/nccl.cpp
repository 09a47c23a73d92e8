/* nccl.cpp: all-reduce over MPI, in stream order, that completes while the host polls. The id that rank 0 hands out
 * must reach every rank, and each must have a device of its own. A call whose length or type is not that of the other
 * ranks never completes, as in NCCL. EMULATOR_NCCL_FAULT plants faults (emulator.h). */
#ifdef USE_NCCL // where there is MPI
#include "nccl.h"

#include <climits>
#include <csignal>
#include <memory>
#include <mpi.h>
#include <vector>

struct ncclComm {
    MPI_Comm world; // its own, so that calls do not mix with the program's
    ncclResult_t error;
    long calls;
};

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess       ? "no error"
           : result == ncclRemoteError ? "remote process exited or there was a network error"
                                       : "invalid usage";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    for (int i = 0; i < 128; i++) id->internal[i] = (char)(i * 37 + 11);
    return ncclSuccess;
}

/* Whether two ranks have one device. */
static bool have_twins(MPI_Comm world, int ranks) {
    std::vector<unsigned char> all((size_t)ranks * 16);
    MPI_Allgather(emulator_device_uuid(), 16, MPI_BYTE, all.data(), 16, MPI_BYTE, world);
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < a; b++)
            if (memcmp(&all[(size_t)a * 16], &all[(size_t)b * 16], 16) == 0) return true;
    return false;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    ncclUniqueId expected;
    int size, mine;
    ncclGetUniqueId(&expected);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    if (memcmp(&id, &expected, sizeof id) || ranks != size || rank != mine) return ncclInvalidUsage;
    *comm = new ncclComm{MPI_COMM_NULL, ncclSuccess, 0};
    MPI_Comm_dup(MPI_COMM_WORLD, &(*comm)->world);
    return have_twins((*comm)->world, ranks) ? ncclInvalidUsage : ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    MPI_Comm_free(&comm->world);
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    *error = comm->error;
    return ncclSuccess;
}

namespace {
struct Call {
    int phase; // 0: nothing has begun, 1: the calls are compared, 2: they sum, 3: they differ
    long long same[4];
    MPI_Request request;
};
} // namespace

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
    auto planted = [=](const char *kind) { return emulator_fault_is("EMULATOR_NCCL_FAULT", kind, comm->calls, false); };
    comm->calls++;
    if (count > INT_MAX) emulator_fault("an all-reduce of more elements than the stand-in for NCCL serves");
    bool hangs = planted("hang"), fails = planted("async"), lost = planted("lost");
    if (planted("mismatch")) count--;
    auto call = std::make_shared<Call>(Call{0, {(long long)count, -(long long)count, type, -(int)type}, {}});
    emulator_enqueue_polled(stream, [=] {
        int done = 0;
        if (lost) raise(SIGSTOP);
        if (fails) comm->error = ncclRemoteError;
        if (hangs || fails || call->phase == 3) return false;
        if (call->phase == 0) {
            MPI_Iallreduce(MPI_IN_PLACE, call->same, 4, MPI_LONG_LONG, MPI_MAX, comm->world, &call->request);
            call->phase = 1;
        }
        MPI_Test(&call->request, &done, MPI_STATUS_IGNORE);
        if (!done || call->phase == 2) return done != 0;
        if (call->same[0] != -call->same[1] || call->same[2] != -call->same[3]) return call->phase = 3, false;
        MPI_Iallreduce(from == to ? MPI_IN_PLACE : from, to, (int)count, type == ncclInt64 ? MPI_INT64_T : MPI_FLOAT,
                       MPI_SUM, comm->world, &call->request);
        call->phase = 2;
        return false;
    });
    return ncclSuccess;
}

#endif
