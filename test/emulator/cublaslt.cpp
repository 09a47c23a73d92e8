/* cublaslt.cpp: cuBLASLt's used subset on a CPU. Everything is column-major, as in the library: D (m,n) =
 * epilogue(alpha op(A) op(B) + beta C). bf16 products are added as tensor cores add, cut towards zero
 * once every eight products. What the library refuses is refused, with its status (documentation of
 * cublasLtMatmul; statuses as measured on sm_86 and sm_89). Next: nccl.cpp. */
#include "cublasLt.h"

#include "cuda_bf16.h"
#include "tensor_core.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

struct LtHandle {};
struct LtMatmulDesc {
    int32_t transposed_a, transposed_b;
    uint32_t epilogue;
    void *bias, *aux;
    int64_t aux_ld;
};
struct LtLayout {
    cudaDataType_t type;
    int64_t rows, columns, ld;
};
struct LtPreference {
    uint64_t workspace;
    uint32_t reduction_mask, alignment[4]; // of A, B, C, D
};

// ---- descriptors ------------------------------------------------------------------------------

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = new LtHandle();
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    *desc = new LtMatmulDesc{CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *field, size_t field_bytes, const void *value, size_t bytes) {
    if (!field || bytes != field_bytes) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&desc->transposed_a, 4, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&desc->transposed_b, 4, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&desc->epilogue, 4, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&desc->bias, 8, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return set(&desc->aux, 8, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return set(&desc->aux_ld, 8, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
    *layout =
        new LtLayout{type, (int64_t)rows, (int64_t)columns, ld}; // not checked until it is used
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    *preference = new LtPreference{0, 7, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
    int alignment = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (alignment >= 0 && alignment < 4)
        return set(&preference->alignment[alignment], 4, value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return set(&preference->workspace, 8, value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return set(&preference->reduction_mask, 4, value, bytes);
    return CUBLAS_STATUS_INVALID_VALUE;
}

// ---- what is refused --------------------------------------------------------------------------

namespace {
struct Epilogue {
    bool bias, aux, aux_written, bias_written;
};
struct Shape {
    int64_t m, n, k;
};
} // namespace

static bool known(uint32_t epilogue, Epilogue *e) {
    *e = Epilogue();
    e->bias = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    e->aux_written = epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    e->aux = e->aux_written || epilogue == CUBLASLT_EPILOGUE_DGELU;
    e->bias_written = epilogue == CUBLASLT_EPILOGUE_BGRADB;
    return epilogue == CUBLASLT_EPILOGUE_DEFAULT || e->bias || e->aux || e->bias_written;
}

static cublasStatus_t problem(const LtMatmulDesc *desc, const LtLayout *a, const LtLayout *b,
                              const LtLayout *c, const LtLayout *d, Shape *shape) {
    Epilogue e;
    for (const LtLayout *layout : {a, b, c, d})
        if (layout->ld < layout->rows || layout->rows < 1 || layout->columns < 1)
            return CUBLAS_STATUS_INVALID_VALUE;
    *shape = {d->rows, d->columns, desc->transposed_a ? a->rows : a->columns};
    if ((desc->transposed_a ? a->columns : a->rows) != shape->m ||
        (desc->transposed_b ? b->rows : b->columns) != shape->n ||
        (desc->transposed_b ? b->columns : b->rows) != shape->k || c->rows != d->rows ||
        c->columns != d->columns)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!known(desc->epilogue, &e)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (a->type != b->type || c->type != d->type ||
        (a->type == CUDA_R_32F && d->type == CUDA_R_16BF))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (e.aux_written && !desc->aux) return CUBLAS_STATUS_NOT_SUPPORTED;
    if ((e.aux && !desc->aux) || ((e.bias || e.bias_written) && !desc->bias))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (e.aux && (desc->aux_ld < shape->m || desc->aux_ld % 8)) return CUBLAS_STATUS_INVALID_VALUE;
    if (e.bias_written && !desc->transposed_b) return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

static uint64_t promise_of(const LtMatmulDesc *desc, const uint32_t alignment[4]) {
    uint64_t promise = desc->epilogue;
    for (int i = 0; i < 4; i++) promise = promise << 12 | alignment[i];
    return promise;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *found) {
    Shape shape;
    *found = 0;
    const char *refused = getenv("EMULATOR_REFUSE");
    if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (refused && !strcmp(refused, "epilogues") && desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (problem(desc, a, b, c, d, &shape) != CUBLAS_STATUS_SUCCESS)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = {{promise_of(desc, preference->alignment)}, 0, CUBLAS_STATUS_SUCCESS};
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

// ---- the product ------------------------------------------------------------------------------

static float element(const void *memory, cudaDataType_t type, int64_t index) {
    return type == CUDA_R_32F ? ((const float *)memory)[index]
                              : __bfloat162float(((const __nv_bfloat16 *)memory)[index]);
}

static void put(void *memory, cudaDataType_t type, int64_t index, float value) {
    if (type == CUDA_R_32F)
        ((float *)memory)[index] = value;
    else
        ((__nv_bfloat16 *)memory)[index] = __float2bfloat16(value);
}

/* op(matrix) as floats, row by row of length `columns`. */
static std::vector<float> gather(const void *memory, const LtLayout *layout, bool transposed,
                                 int64_t rows, int64_t columns) {
    std::vector<float> out((size_t)(rows * columns));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[(size_t)(r * columns + c)] =
                element(memory, layout->type, transposed ? c + r * layout->ld : r + c * layout->ld);
    return out;
}

/* One column of op(A) op(B): sums[i] over k of a_rows[k][i] * b[k]. */
static void multiply_column(std::vector<double> &sums, const std::vector<float> &a_rows,
                            const float *b, const Shape &shape, bool tensor_cores) {
    std::vector<double> block((size_t)shape.m);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t k0 = 0; k0 < shape.k; k0 += TENSOR_BLOCK) {
        std::fill(block.begin(), block.end(), 0.0);
        for (int64_t k = k0; k < std::min(shape.k, k0 + TENSOR_BLOCK); k++) {
            const float *a = &a_rows[(size_t)(k * shape.m)];
            double factor = b[k];
            for (int64_t i = 0; i < shape.m; i++) block[(size_t)i] += a[i] * factor;
        }
        for (size_t i = 0; i < block.size(); i++)
            sums[i] =
                tensor_cores ? tensor_cut(sums[i] + block[i]) : (double)(float)(sums[i] + block[i]);
    }
}

/* The tanh approximation, as GELU epilogues compute it, and its derivative. */
static float gelu(float x) {
    return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
static float gelu_gradient(float x) {
    float th = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + th) +
           0.5f * x * (1.0f - th * th) * 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
}

namespace {
struct Product {
    LtMatmulDesc desc;
    LtLayout a, b, c, d;
    Shape shape;
    float alpha, beta;
    const void *A, *B, *C;
    void *D;
};
} // namespace

static float finish(const Product &p, double sum, int64_t i, int64_t j) {
    uint32_t epilogue = p.desc.epilogue;
    float value = p.alpha * (float)sum;
    if (p.beta != 0) value += p.beta * element(p.C, p.c.type, i + j * p.c.ld);
    if (epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
        value += element(p.desc.bias, p.d.type, i);
    if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
        put(p.desc.aux, p.d.type, i + j * p.desc.aux_ld, value);
        value = gelu(value);
    }
    if (epilogue == CUBLASLT_EPILOGUE_DGELU)
        value *= gelu_gradient(element(p.desc.aux, p.d.type, i + j * p.desc.aux_ld));
    return value;
}

static void run(const Product &p) {
    bool tensor_cores = p.a.type == CUDA_R_16BF;
    std::vector<float> a = gather(p.A, &p.a, !p.desc.transposed_a, p.shape.k, p.shape.m);
    std::vector<float> b = gather(p.B, &p.b, !p.desc.transposed_b, p.shape.n, p.shape.k);
    std::vector<double> sums((size_t)p.shape.m);
    for (int64_t j = 0; j < p.shape.n; j++) {
        const float *column = &b[(size_t)(j * p.shape.k)];
        multiply_column(sums, a, column, p.shape, tensor_cores);
        for (int64_t i = 0; i < p.shape.m; i++)
            put(p.D, p.d.type, i + j * p.d.ld, finish(p, sums[(size_t)i], i, j));
        if (p.desc.epilogue == CUBLASLT_EPILOGUE_BGRADB) { // written, whatever beta is
            float sum = 0;
            for (int64_t k = 0; k < p.shape.k; k++) sum += column[k];
            put(p.desc.bias, p.d.type, j, sum);
        }
    }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    Product p = {*desc, *a, *b, *c, *d, {}, *(const float *)alpha, *(const float *)beta,
                 A,     B,  C,  D};
    cublasStatus_t status = problem(desc, a, b, c, d, &p.shape);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (workspace_bytes && (uintptr_t)workspace % 256) return CUBLAS_STATUS_INVALID_VALUE;
    if (C == D && memcmp(c, d, sizeof *c)) return CUBLAS_STATUS_INVALID_VALUE;
    const void *pointers[4] = {A, B, C, D};
    for (int i = 0; i < 4; i++) { // an algorithm chosen for better alignment faults on the device
        uint64_t promised = algo->promise >> (12 * (3 - i)) & 0xfff;
        if (!promised || (uintptr_t)pointers[i] % promised)
            emulator_fault("cublasLtMatmul: operand %c is not aligned to the promised %d bytes",
                           'A' + i, (int)promised);
    }
    if (algo->promise >> 48 != desc->epilogue)
        emulator_fault("cublasLtMatmul: the algorithm was chosen for another epilogue");
    emulator_enqueue(stream, [=] { run(p); });
    return CUBLAS_STATUS_SUCCESS;
}
