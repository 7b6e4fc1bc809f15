/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptors that this process has open, whoever has opened them: listed, and closed by
 * ranges. Linux knows them (open_descriptors_linux.c); elsewhere each number is tried
 * (open_descriptors_posix.c). */
#pragma once

/* Calls `visit` for each open descriptor but those that the call itself needs. */
void open_descriptors_visit(void (*visit)(void *arg, int fd), void *arg);
/* Closes those from `first` to `last`, UINT_MAX for all that follow. */
void open_descriptors_close(unsigned first, unsigned last);
