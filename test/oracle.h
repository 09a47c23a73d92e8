/* oracle.h: the CPU kernels in double, beside another backend in one program: what a device's results
 * are compared with. The Makefile compiles llmc/cpu/ once more for this, with every operation of
 * llmc/ops.h renamed (oracle_names.h). Shapes and meanings are those of ops.h. */
#ifndef ORACLE_H
#define ORACLE_H

#include "../llmc/ops.h"

void oracle_embedding_forward(double *out, const int32_t *ids, const double *wte, const double *wpe,
                              int B, int T, int C, int first);
void oracle_embedding_backward(double *dwte, double *dwpe, const double *dout, const int32_t *ids,
                               int B, int T, int C, int seq_len, bool accumulate);
void oracle_layernorm_forward(double *out, double *mean, double *rstd, const double *x,
                              const double *w, const double *b, int N, int C);
void oracle_layernorm_backward(double *dx, double *dw, double *db, const double *dout,
                               const double *dresidual, const double *x, const double *mean,
                               const double *rstd, const double *w, int N, int C, bool accumulate);
void oracle_linear_forward(double *out, const double *x, const double *w, const double *bias,
                           const double *residual, int N, int K, int O);
void oracle_linear_gelu_forward(double *out, double *pre, const double *x, const double *w,
                                const double *bias, int N, int K, int O);
void oracle_linear_backward_input(double *dx, const double *dout, const double *w,
                                  const double *pre, int N, int K, int O);
void oracle_linear_backward_weight(double *dw, double *dbias, const double *dout, const double *x,
                                   int N, int K, int O, bool accumulate);
void oracle_attention_forward(double *out, double *lse, const double *qkv, int B, int T, int C,
                              int NH);
void oracle_attention_backward(double *dqkv, const double *dout, const double *out,
                               const double *lse, const double *qkv, int B, int T, int C, int NH);
int oracle_classifier_chunk(int N, int Vp);
void oracle_classifier(double *losses, double *dx, double *dwte, double *logits, const double *x,
                       const double *wte, const int32_t *targets, double scale, int N, int C, int V,
                       int Vp, bool accumulate);
void oracle_gradient_square_sums(double *sums, const double *grads, const Span *spans, int count);
void oracle_adamw_update(double *params, double *master, double *m, double *v, const double *grads,
                         const Span *spans, int count, const AdamWStep *step);

#endif
