/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes of real sockets, with the test at the far ends. */
#pragma once

#include "net/conn_connect.h"
#include "net/conn_pipe.h"
#include "support/test.h"

/* Copied bytes before a direction is spliced. */
#define MUCH ((size_t)256 * 1024)

/* How often the operations were called since the latest pipe was opened. */
extern unsigned recvs, splices_in, splices_out;

/* An end of a pipe, with the harness at its far side. */
struct pipe_end {
    struct fb_conn *conn;
    int far;
    size_t said, heard;
    bool heard_end;
    unsigned closings;
    fb_reason reason;
};

struct splicing {
    struct net net; /* the first member */
    struct mechanism mechanism;
    struct io_ops io;
    struct log log;
    struct log_target target;
    struct counters counters;
    struct heartbeat heartbeat;
    bool tcp;
    unsigned descriptors; /* open descriptors before the start */
};

/* epoll and poll, each with TCP and unix sockets. */
#define SPLICING_KINDS 4

struct splicing *splicing_start(int i);
/* Ends everything; fails if a descriptor is left open. */
void splicing_stop(struct splicing *splicing);
/* Descriptors whose /proc/self/fd links begin so. */
unsigned count_descriptors(const char *like);

void splicing_open_pipe(struct splicing *splicing, struct pipe_end ends[2]);
void splicing_open_pipe_with(
    struct splicing *splicing, struct pipe_end ends[2], const struct conn_pipe_options *options);
void splicing_close_far(struct pipe_end ends[2]);
/* Sends as much as the socket takes, up to the place `until`. */
void pipe_end_say(struct pipe_end *end, size_t until);
/* Receives at most n bytes; fails unless they equal the opposite end's bytes. */
void pipe_end_hear(struct pipe_end *end, size_t n);

void splicing_turn(struct splicing *splicing);
uint64_t now_ms(void);

#define splicing_turn_until(splicing, condition, action)                                           \
    do {                                                                                           \
        uint64_t deadline = now_ms() + TEST_PATIENCE_MS;                                           \
        while (!(condition)) {                                                                     \
            action;                                                                                \
            splicing_turn(splicing);                                                               \
            ck_assert_msg(now_ms() < deadline, "waited in vain for: %s", #condition);              \
        }                                                                                          \
    } while (0)

/* Moves n more bytes from `from` to `to`. */
void splicing_move(struct splicing *splicing, struct pipe_end *from, struct pipe_end *to, size_t n);
/* Bytes until nothing more is taken, with some of them in a kernel pipe. */
void splicing_fill(struct splicing *splicing, struct pipe_end *from);
