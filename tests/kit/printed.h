/* SPDX-License-Identifier: BSD-2-Clause */
/* Catches what is printed to standard error. */
#pragma once

#define PRINTED_MAX 65536

struct printed {
    int fd, saved;
};

void printed_begin(struct printed *printed);
/* Returns the whole text, as a string. */
void printed_end(struct printed *printed, char text[PRINTED_MAX]);
