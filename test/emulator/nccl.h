/* nccl.h: the emulator's stand-in for NCCL's used subset, served by MPI (nccl.cpp). */
#ifndef EMULATOR_NCCL_H
#define EMULATOR_NCCL_H

#include "cuda_runtime.h"

enum ncclResult_t {
    ncclSuccess = 0,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6
};
enum ncclDataType_t { ncclInt64 = 4, ncclFloat32 = 7 };
enum ncclRedOp_t { ncclSum = 0 };
struct ncclUniqueId {
    char internal[128];
};
typedef struct ncclComm *ncclComm_t;

const char *ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream);

#endif
