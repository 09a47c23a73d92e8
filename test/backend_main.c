/* backend_main.c: the program of all backend_*.c: every operation of llmc/ops.h against the oracle. Reading
 * order: backend.h, backend_layers.c, backend_attention.c, backend_update.c, backend_ranks.c,
 * backend_model.c. */
#include "backend.h"

int backend_rank(int argc, char **argv);

int main(int argc, char **argv) {
    int code = backend_rank(argc, argv);
    if (code >= 0) return code; // one of several ranks that the test of ranks has started
    backend_open(0, 1, 1);
    return test_main(argc, argv);
}
