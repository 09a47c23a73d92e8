/* matmul.cuh: linear layers by cuBLASLt. One thin wrapper: a product is described once per shape,
 * orientation, epilogue and types, the library's first choice is kept and never timed, so that all runs and ranks
 * choose the same. Where the library offers no epilogue, the kernels of gelu.cuh and columns.cuh follow instead
 * (TRAIN_GPT2_EPILOGUES=own forces them everywhere).
 *
 * cuBLASLt is column-major and so sees every row-major matrix transposed: a row-major (rows, columns)
 * matrix is its (columns, rows) matrix with leading dimension `columns`, and the operands change places. */
#ifndef LLMC_CUDA_MATMUL_CUH
#define LLMC_CUDA_MATMUL_CUH

#include "columns.cuh"
#include "gelu.cuh"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

static inline void cublas_check(cublasStatus_t status, const char *what) {
    if (status != CUBLAS_STATUS_SUCCESS)
        fatal(EXIT_RUNTIME, "%s: cuBLASLt status %d", what, (int)status);
}
#define CUBLAS(call) cublas_check(call, #call)

template <typename T> struct DataType;
template <> struct DataType<float> { static const cudaDataType_t value = CUDA_R_32F; };
template <> struct DataType<bf16> { static const cudaDataType_t value = CUDA_R_16BF; };

/* D (m,n) = op(A) op(B) [+ D or C], k summed over: all that the choice of an algorithm depends on. Without padding,
 * because keys are compared byte by byte. */
typedef struct {
    int32_t m, n, k;
    int32_t transpose_a, transpose_b;
    int32_t epilogue;
    int32_t output_type; // A and B have the type of activations
    int32_t alignment;   // in bytes, of every operand
} PlanKey;

typedef struct {
    PlanKey key;
    bool offered; // false: the library has nothing for this
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
} MatmulPlan;

constexpr int PLANS_MAX = 256, MATMUL_WORKSPACE = 32 << 20;

static struct {
    cublasLtHandle_t handle;
    void *workspace;
    MatmulPlan plans[PLANS_MAX]; // a ring buffer: when it is full the oldest is replaced
    int count;
    bool own_epilogues;
} matmul_state;

// ---- plans --------------------------------------------------------------------------------------

static void plan_free(MatmulPlan *plan) {
    CUBLAS(cublasLtMatmulDescDestroy(plan->desc));
    CUBLAS(cublasLtMatrixLayoutDestroy(plan->a));
    CUBLAS(cublasLtMatrixLayoutDestroy(plan->b));
    CUBLAS(cublasLtMatrixLayoutDestroy(plan->d));
}

static void describe(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                     const void *value, size_t bytes) {
    CUBLAS(cublasLtMatmulDescSetAttribute(desc, attribute, value, bytes));
}

/* The operands that an epilogue reads or writes. */
static void set_pointers(MatmulPlan *plan, const void *bias, const void *aux) {
    int64_t ld = plan->key.m;
    if (bias) describe(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (!aux) return;
    describe(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
    describe(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
}

/* Asks for the best algorithm that sums split products in float, in a fixed order. */
static void choose_algorithm(MatmulPlan *plan) {
    cublasLtMatmulPreference_t preference;
    uint64_t workspace = MATMUL_WORKSPACE;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t alignment = (uint32_t)plan->key.alignment;
    CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    CUBLAS(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    CUBLAS(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme));
    const cublasLtMatmulPreferenceAttributes_t operands[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (cublasLtMatmulPreferenceAttributes_t operand : operands)
        CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, operand, &alignment,
                                                    sizeof alignment));
    cublasLtMatmulHeuristicResult_t result;
    memset(&result, 0, sizeof result);
    int found = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(matmul_state.handle, plan->desc, plan->a, plan->b, plan->d,
                                       plan->d, preference, 1, &result, &found);
    plan->offered =
        status == CUBLAS_STATUS_SUCCESS && found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    plan->algo = result.algo;
    CUBLAS(cublasLtMatmulPreferenceDestroy(preference));
}

static void plan_describe(MatmulPlan *plan, const PlanKey *key, const void *bias, const void *aux) {
    cudaDataType_t input = DataType<Act>::value, output = (cudaDataType_t)key->output_type;
    int m = key->m, n = key->n, k = key->k;
    plan->key = *key;
    CUBLAS(cublasLtMatmulDescCreate(&plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    describe(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &key->transpose_a, sizeof key->transpose_a);
    describe(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &key->transpose_b, sizeof key->transpose_b);
    describe(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &key->epilogue, sizeof key->epilogue);
    int a_rows = key->transpose_a ? k : m, a_columns = key->transpose_a ? m : k;
    int b_rows = key->transpose_b ? n : k, b_columns = key->transpose_b ? k : n;
    CUBLAS(cublasLtMatrixLayoutCreate(&plan->a, input, a_rows, a_columns, a_rows));
    CUBLAS(cublasLtMatrixLayoutCreate(&plan->b, input, b_rows, b_columns, b_rows));
    CUBLAS(cublasLtMatrixLayoutCreate(&plan->d, output, m, n, m));
    set_pointers(plan, bias, aux); // before the choice: it looks at their alignment
    choose_algorithm(plan);
}

static MatmulPlan *plan_for(const PlanKey *key, const void *bias, const void *aux) {
    int kept = matmul_state.count < PLANS_MAX ? matmul_state.count : PLANS_MAX;
    for (int i = 0; i < kept; i++)
        if (memcmp(&matmul_state.plans[i].key, key, sizeof *key) == 0)
            return &matmul_state.plans[i];
    MatmulPlan *plan = &matmul_state.plans[matmul_state.count % PLANS_MAX];
    if (matmul_state.count++ >= PLANS_MAX) plan_free(plan);
    plan_describe(plan, key, bias, aux);
    return plan;
}

/* The largest power of two up to 256 that divides all addresses. NULL divides by anything. */
static int common_alignment(const void *a, const void *b, const void *c, const void *d) {
    uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d | 256;
    return (int)(bits & (~bits + 1));
}

/* One product. C NULL: D = epilogue(op(A) op(B)); else C is added before the epilogue. Returns false,
 * and has done nothing, when the library does not offer this epilogue for this shape. */
typedef struct {
    const Act *A, *B;
    const void *C;
    void *D;
    const void *bias, *aux;
    int m, n, k;
    bool transpose_a, transpose_b;
    cublasLtEpilogue_t epilogue;
    cudaDataType_t output_type;
} Matmul;

static bool matmul(const Matmul *p) {
    bool fused = p->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
    // Some versions ignore a bias where a dimension is 1 (release notes of 12.0 and 12.8).
    if (fused && (matmul_state.own_epilogues || p->m == 1 || p->n == 1)) return false;
    PlanKey key = {p->m,
                   p->n,
                   p->k,
                   p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                   p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                   p->epilogue,
                   p->output_type,
                   common_alignment(p->A, p->B, p->C, p->D)};
    MatmulPlan *plan = plan_for(&key, p->bias, p->aux);
    if (!plan->offered && fused) return false;
    if (!plan->offered)
        fatal(EXIT_RUNTIME, "cuBLASLt offers no algorithm for a product of %d x %d x %d", p->m,
              p->n, p->k);
    set_pointers(plan, p->bias, p->aux);
    float alpha = 1, beta = p->C ? 1 : 0;
    CUBLAS(cublasLtMatmul(matmul_state.handle, plan->desc, &alpha, p->A, plan->a, p->B, plan->b,
                          &beta, p->C ? p->C : p->D, plan->d, p->D, plan->d, &plan->algo,
                          matmul_state.workspace, MATMUL_WORKSPACE, device.stream));
    return true;
}

static void matmul_open() {
    const char *epilogues = getenv("TRAIN_GPT2_EPILOGUES");
    matmul_state.own_epilogues = epilogues && strcmp(epilogues, "own") == 0;
    CUBLAS(cublasLtCreate(&matmul_state.handle));
    CUDA(cudaMalloc(&matmul_state.workspace, MATMUL_WORKSPACE));
}

// ---- linear layers; shapes as in ops.h ------------------------------------------------------------

/* D (m,n) = op(A) op(B), k summed over, without anything else. */
static Matmul product(void *D, const Act *A, bool transpose_a, const Act *B, bool transpose_b,
                      int m, int n, int k, cudaDataType_t output_type) {
    Matmul p;
    memset(&p, 0, sizeof p);
    p.A = A, p.B = B, p.D = D;
    p.m = m, p.n = n, p.k = k;
    p.transpose_a = transpose_a, p.transpose_b = transpose_b;
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.output_type = output_type;
    return p;
}

/* Tries the product with an epilogue and its operands; false when that is not offered. */
static bool matmul_fused(Matmul p, cublasLtEpilogue_t epilogue, const void *bias, const void *aux) {
    p.epilogue = epilogue;
    p.bias = bias;
    p.aux = aux;
    return matmul(&p);
}

/* y = x @ w.T: the library's y.T (O,N) = w.T.T (O,K) x.T (K,N). */
static Matmul linear_product(Act *y, const Act *x, const Param *w, int N, int K, int O) {
    return product(y, w, true, x, false, O, N, K, DataType<Act>::value);
}

void linear_forward(Act *out, const Act *x, const Param *w, const Param *bias, const Act *residual,
                    int N, int K, int O) {
    Matmul p = linear_product(out, x, w, N, K, O);
    p.C = residual;
    if (bias && matmul_fused(p, CUBLASLT_EPILOGUE_BIAS, bias, NULL)) return;
    matmul(&p);
    if (bias) add_bias(out, bias, N, O);
}

void linear_gelu_forward(Act *out, Act *pre, const Act *x, const Param *w, const Param *bias, int N,
                         int K, int O) {
    bool fuse = device.major >= 9 && O % 8 == 0; // before Hopper bf16's GELU is not really fused
    Matmul p = linear_product(out, x, w, N, K, O);
    if (fuse && matmul_fused(p, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, bias, pre)) return;
    linear_forward(pre, x, w, bias, NULL, N, K, O);
    gelu_forward(out, pre, (size_t)N * O);
}

/* dx = dout @ w [* gelu'(pre)]: dx.T (K,N) = w.T (K,O) dout.T (O,N). */
void linear_backward_input(Act *dx, const Act *dout, const Param *w, const Act *pre, int N, int K,
                           int O) {
    bool fuse = pre && device.major >= 9 && K % 8 == 0;
    Matmul p = product(dx, w, false, dout, false, K, N, O, DataType<Act>::value);
    if (fuse && matmul_fused(p, CUBLASLT_EPILOGUE_DGELU, NULL, pre)) return;
    matmul(&p);
    if (pre) gelu_backward(dx, pre, (size_t)N * K);
}

/* dw (+)= dout.T @ x: dw.T (K,O) = x.T (K,N) dout (N,O). Summed in float, for gradients are float. The
 * library can write the bias's gradient beside it but not add to it: that serves a first micro-step. */
void linear_backward_weight(Grad *dw, Grad *dbias, const Act *dout, const Act *x, int N, int K,
                            int O, bool accumulate) {
    Matmul p = product(dw, x, false, dout, true, K, O, N, DataType<Grad>::value);
    p.C = accumulate ? dw : NULL;
    if (dbias && !accumulate && matmul_fused(p, CUBLASLT_EPILOGUE_BGRADB, dbias, NULL)) return;
    matmul(&p);
    if (dbias) column_sums(dbias, dout, N, O, accumulate);
}

#endif
