/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads of files for protocols, in the way of the server's `aio`: by the kernel, on threads, or in
 * place. Responsible for the memory of reads, which is not freed while the kernel or a thread may
 * write there, and for reads that wait. Never runs a callback (session/read.h). */
#pragma once

#include "session/read.h"

struct worker;
struct file_read;

struct file_reads {
    unsigned most; /* reads that the kernel has at once; 0: there is no kernel AIO */
    unsigned under_way_n;
    TAILQ_HEAD(, file_read) under_way; /* in the kernel */
    TAILQ_HEAD(, file_read) waiting;   /* until it has room */
};

/* Sets up kernel AIO where a server wants it, before the sandbox; else warns, and threads read. */
void file_reads_open(struct worker *worker);
/* Ends all reads, without connections by now. */
void file_reads_close(struct worker *worker);
/* Begins a read, see fb_read_file(); -1 when refused. */
int file_reads_begin(
    struct fb_conn *conn, int fd, uint64_t offset, size_t n, session_read_done *done);
fb_aio file_reads_way(const struct fb_conn *conn);
