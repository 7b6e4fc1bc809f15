/* SPDX-License-Identifier: BSD-2-Clause */
/* <check.h> includes <math.h> for comparisons of floating-point numbers, which no test makes: a
 * quarter of what the compiler reads for a test. This file stands before the system's. */
