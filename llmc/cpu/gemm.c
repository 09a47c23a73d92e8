// clang-format off
/* gemm.c: a matrix product c = a b + start, cut so that each level of the memory is used many times.
 *
 *     level       what lies there                                       used by
 *     registers   a tile of c, TILE_ROWS x TILE_COLUMNS                 every step of the depth   microkernel.h
 *     L1          a block of b, GEMM_DEPTH x TILE_COLUMNS, packed       all row panels of a
 *     L2          a block of a, ROW_BLOCK x DEPTH_PASS, packed          all column panels of b
 *     memory      c and b                                               read and written in one stream
 *
 * A task multiplies one block of rows of a by one panel of columns of b. Threads take tasks in order. Each
 * thread packs what it needs for itself and never waits for another. Packing costs a few per cent of the
 * time, because each packed element is used hundreds of times.
 *
 * Which thread computes a task does not matter: every element of c is one chain of fused multiply-adds in the
 * order of the depth, restarted every GEMM_DEPTH steps. So its bits depend on the depth alone.
 * Read microkernel.h first; next: pack.h. */
// clang-format on
#include "gemm.h"

#include "../base/arithmetic.h"
#include "../base/memory.h"
#include "gelu.h"
#include "microkernel.h"
#include "pack.h"

/* Rows of a that are packed at once. More: b is packed less often, each time for more rows. Fewer:
 * a stays in L2, and more tasks can be shared out. */
#define ROW_BLOCK 512
#define ROW_BLOCK_LEAST 32

/* Depth of a that is packed at once, a multiple of GEMM_DEPTH: c is loaded and stored once for
 * each, and again, but in L2, for every GEMM_DEPTH. */
#define DEPTH_PASS (2 * GEMM_DEPTH)

/* Multiply-adds from which it pays to wake the other threads. */
#define WORTH_SHARING ((size_t)1 << 19)

enum { CHUNKS = GEMM_DEPTH / CHUNK };

/* What a thread keeps between products. */
typedef struct {
    real *a, *b;         // packed: ROW_BLOCK x DEPTH_PASS; GEMM_DEPTH x TILE_COLUMNS
    size_t packed_block; // the row block that a holds in this pass
} Workspace;

static Workspace *workspaces;
static int workspace_count;

#define NOTHING_PACKED SIZE_MAX

/* Makes room for each thread, once, and forgets what is packed: another product has other matrices. */
static void prepare_workspaces(void) {
    int threads = omp_get_max_threads();
    if (threads > workspace_count) {
        workspaces = memory_grow(workspaces, (size_t)threads, sizeof *workspaces, "matrix product");
        for (int i = workspace_count; i < threads; i++) {
            size_t a = (size_t)ROW_BLOCK * DEPTH_PASS, b = (size_t)GEMM_DEPTH * TILE_COLUMNS;
            workspaces[i].a = memory_map((a + b) * sizeof(real), "packed matrices");
            workspaces[i].b = workspaces[i].a + a;
        }
        workspace_count = threads;
    }
    for (int i = 0; i < threads; i++) workspaces[i].packed_block = NOTHING_PACKED;
}

/* How many pieces of `size` cover `count`. */
static size_t blocks(size_t count, size_t size) { return (size_t)divide_up((int64_t)count, (int64_t)size); }

/* One pass over part of the depth, cut into tasks. */
typedef struct {
    const Product *product;
    size_t first_k, end_k; // the part of the depth
    size_t row_block, column_panels, tasks;
} Pass;

/* Packs the row block, for all of the pass, one block of GEMM_DEPTH after the other. */
static void pack_rows(const Pass *pass, size_t first_row, size_t rows, real *out) {
    const Matrix *a = &pass->product->a;
    for (size_t k = pass->first_k; k < pass->end_k; k += GEMM_DEPTH) {
        size_t depth = size_min(GEMM_DEPTH, pass->end_k - k);
        pack_panels(out, TILE_ROWS, a->at + first_row * a->row + k * a->column, a->row, a->column,
                    rows, depth);
        out += pack_rounded(rows, TILE_ROWS) * depth;
    }
}

/* What follows the sums, for a tile of c that is still in L1. */
static void finish_tile(const Product *p, size_t first_row, size_t first_column, size_t rows,
                        size_t columns) {
    for (size_t i = 0; i < rows; i++) {
        size_t at = (first_row + i) * p->c_stride + first_column;
        if (p->bias)
            for (size_t j = 0; j < columns; j += VEC) { // whole vectors, as they were stored and will be read: a
                size_t n = columns - j;                 // load waits long for a store that is only part of it
                vec sum = vec_load_n(p->c + at + j, n) + vec_load_n(p->bias + first_column + j, n);
                vec_store_n(p->c + at + j, sum, n);
            }
        if (p->gelu) gelu_row(p->gelu + at, p->c + at, columns);
        if (p->gelu_input) gelu_grad_row(p->c + at, p->gelu_input + at, columns);
    }
}

/* A tile whose columns do not fill its vectors: it is computed in a buffer, then copied. */
static void edge_tile(size_t rows, size_t columns, TILE_ARGUMENTS) {
    real beside[TILE_ROWS * TILE_COLUMNS] = {0};
    for (size_t i = 0; start && i < rows; i++)
        memcpy(beside + i * TILE_COLUMNS, start + i * stride, columns * sizeof(real));
    tiles[rows - 1][blocks(columns, VEC) - 1](depth, a, b, beside, start ? beside : NULL,
                                              TILE_COLUMNS, prefetch);
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * stride, beside + i * TILE_COLUMNS, columns * sizeof(real));
}

/* The part of b that a task packs for one block of the depth. */
typedef struct {
    const real *at;
    size_t row, column; // as in Matrix
    size_t depth, columns;
} Block;

/* The block of b at depth k whose first column is `column`; smaller at b's edges. */
static Block block_of_b(const Pass *pass, size_t k, size_t column) {
    const Product *p = pass->product;
    return (Block){.at = p->b.at + k * p->b.row + column * p->b.column,
                   .row = p->b.row,
                   .column = p->b.column,
                   .depth = size_min(GEMM_DEPTH, pass->end_k - k),
                   .columns = size_min(TILE_COLUMNS, p->columns - column)};
}

/* What the panel-th tile prefetches: its share of the block of b that will be packed next. */
static Prefetch prefetch_of(const Block *next, size_t panel) {
    if (next->row == 1) { // rows of b lie along the depth: TILE_VECS of them, CHUNK by CHUNK
        if ((panel + 1) * TILE_VECS <= next->columns)
            return (Prefetch){next->at + panel * TILE_VECS * next->column, CHUNK, next->column};
    } else if (panel * CHUNKS < next->depth) { // CHUNKS times TILE_VECS vectors
        return (Prefetch){next->at + panel * CHUNKS * next->row, next->row, VEC};
    }
    return (Prefetch){next->at, 0, 0}; // nothing more to fetch
}

/* Asks for a tile of a matrix of c's shape that will be read when the sums are complete. */
static void fetch_tile(const real *at, size_t stride, size_t rows, size_t columns) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j += 64 / sizeof(real)) // lines of a cache
            __builtin_prefetch(at + i * stride + j, 0, 2);      // to L2
}

/* A packed block of b times all row panels of the packed block of a, for `depth` steps from k. Meanwhile the
 * next block of b is prefetched. */
static void block_product(const Pass *pass, size_t k, size_t depth, const real *a, const real *b,
                          size_t first_row, size_t end_row, size_t column, const Block *next) {
    const Product *p = pass->product;
    size_t columns = size_min(TILE_COLUMNS, p->columns - column);
    size_t panels = blocks(end_row - first_row, TILE_ROWS);
    const real *start = k == 0 ? p->start : p->c;
    for (size_t panel = 0; panel < panels; panel++, a += TILE_ROWS * depth) {
        size_t row = first_row + panel * TILE_ROWS, rows = size_min(TILE_ROWS, end_row - row);
        size_t at = row * p->c_stride + column;
        const real *tile_start = start ? start + at : NULL;
        const Prefetch prefetch = prefetch_of(next, panel);
        bool complete = k + depth == p->depth;
        if (complete && p->gelu_input) fetch_tile(p->gelu_input + at, p->c_stride, rows, columns);
        if (columns % VEC)
            edge_tile(rows, columns, depth, a, b, p->c + at, tile_start, p->c_stride, &prefetch);
        else
            tiles[rows - 1][columns / VEC - 1](depth, a, b, p->c + at, tile_start, p->c_stride,
                                               &prefetch);
        if (complete) finish_tile(p, row, column, rows, columns);
    }
}

/* One task: packs the block of a if this thread does not have it yet, then takes b block by block along the
 * depth. */
static void run_task(const Pass *pass, size_t task) {
    const Product *p = pass->product;
    Workspace *w = &workspaces[omp_get_thread_num()];
    size_t block = task / pass->column_panels, column = task % pass->column_panels * TILE_COLUMNS;
    size_t first_row = block * pass->row_block;
    size_t end_row = size_min(first_row + pass->row_block, p->rows);
    // tasks of one row block follow each other, so most find it packed
    if (w->packed_block != block) {
        pack_rows(pass, first_row, end_row - first_row, w->a);
        w->packed_block = block;
    }
    const real *a = w->a;
    // one block of b is multiplied while the next is prefetched
    Block next = block_of_b(pass, pass->first_k, column);
    for (size_t k = pass->first_k; k < pass->end_k; k += GEMM_DEPTH) {
        Block b = next;
        pack_panels(w->b, TILE_COLUMNS, b.at, b.column, b.row, b.columns, b.depth);
        if (k + GEMM_DEPTH < pass->end_k)
            next = block_of_b(pass, k + GEMM_DEPTH, column);
        else if (column + TILE_COLUMNS < p->columns)
            next = block_of_b(pass, pass->first_k, column + TILE_COLUMNS);
        block_product(pass, k, b.depth, a, w->b, first_row, end_row, column, &next);
        a += pack_rounded(end_row - first_row, TILE_ROWS) * b.depth;
    }
}

void gemm(const Product *p) {
    // Few rows: smaller row blocks, so that there are tasks for all threads.
    Pass pass = {.product = p, .row_block = ROW_BLOCK};
    pass.column_panels = blocks(p->columns, TILE_COLUMNS);
    while (pass.row_block > ROW_BLOCK_LEAST &&
           blocks(p->rows, pass.row_block) * pass.column_panels < 4 * (size_t)omp_get_max_threads())
        pass.row_block /= 2;
    // All row blocks have the same size: a half-size last block would leave its thread idle for half the time.
    size_t even = blocks(p->rows, blocks(p->rows, pass.row_block));
    pass.row_block = blocks(even, TILE_ROWS) * TILE_ROWS;
    pass.tasks = blocks(p->rows, pass.row_block) * pass.column_panels;
    // The depth in passes: c is loaded and stored once for each, and what a thread packs of a fits L2.
    for (pass.first_k = 0; pass.first_k < p->depth; pass.first_k = pass.end_k) {
        pass.end_k = size_min(pass.first_k + DEPTH_PASS, p->depth);
        prepare_workspaces();
        PARALLEL_TASKS_IF(p->rows * p->columns * (pass.end_k - pass.first_k) > WORTH_SHARING)
        for (size_t task = 0; task < pass.tasks; task++) run_task(&pass, task);
    }
}
