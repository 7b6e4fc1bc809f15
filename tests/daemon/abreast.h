/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of a test in processes of their own, several at a time, where waiting takes most of the
 * time. Leftovers of a failed part are ended. */
#pragma once

#define ABREAST_MAX 16

/* Runs part(arg, i) for each i below n, at most so many at a time. Fails the test at the end with
 * the notes of the parts that have failed or hang. */
void abreast_run(unsigned n, unsigned at_a_time, void (*part)(void *arg, unsigned i), void *arg);
/* Notes the next action of a part: printed when the part fails. */
void abreast_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails the part that calls it. */
void abreast_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
