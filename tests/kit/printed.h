/* SPDX-License-Identifier: BSD-2-Clause */
/* What is printed to standard error meanwhile. */
#pragma once

#define PRINTED_MAX 65536

struct printed {
    int fd, saved;
};

void printed_begin(struct printed *printed);
/* All of it, as a string. */
void printed_end(struct printed *printed, char text[PRINTED_MAX]);
