/* oracle.h: the plain loops of llmc/plain/ in double, beside another implementation of llmc/ops.h in one
 * program: what every test of a kernel compares with.
 *
 * Two functions of one name do not fit one program. So make compiles llmc/plain/ for the tests with plain_
 * before the name of every operation, and with double for `real`: plain_linear_forward(double *out, ...).
 * The declarations and the list of names are made from ops.h itself (oracle.awk), so that they cannot
 * differ from it. Shapes and meanings are those of ops.h. */
#ifndef ORACLE_H
#define ORACLE_H

#include "../llmc/ops.h"

#include "plain_ops.h" // made in the build folder

#endif
