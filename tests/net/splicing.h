/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes of real sockets, with the test at their far ends. */
#pragma once

#include "net/conn.h"
#include "support/test.h"

/* Copied bytes after which a direction is spliced. */
#define MUCH ((size_t)256 * 1024)

/* How often the operations were called since the latest pipe was opened. */
extern unsigned recvs, splices_in, splices_out;

/* One end of a pipe, with the harness at its far side. */
struct side {
    struct fb_conn *conn;
    int far;
    size_t said, heard;
    bool heard_end;
    unsigned closings;
    fb_reason reason;
};

struct rig {
    struct net net; /* the first member */
    struct mechanism mechanism;
    struct io_ops io;
    struct log log;
    struct log_target target;
    struct counters counters;
    bool tcp;
    unsigned descriptors; /* that were open before it */
};

/* epoll and poll, each with TCP and unix sockets. */
#define RIGS 4

struct rig *set_up(int i);
/* Ends everything; fails if a descriptor is left open. */
void tear_down(struct rig *rig);
/* Descriptors whose /proc/self/fd links begin so. */
unsigned count_descriptors(const char *like);

void open_pipe(struct rig *rig, struct side sides[2]);
void close_far(struct side sides[2]);
/* As much as its socket takes, up to the place `until`. */
void say(struct side *side, size_t until);
/* At most n bytes; fails unless they are what the other side has said. */
void hear(struct side *side, size_t n);

void turn(struct rig *rig);
uint64_t now_ms(void);

#define DEADLINE_MS 20000
#define turn_until(rig, condition, action)                                                         \
    do {                                                                                           \
        uint64_t deadline = now_ms() + DEADLINE_MS;                                                \
        while (!(condition)) {                                                                     \
            action;                                                                                \
            turn(rig);                                                                             \
            ck_assert_msg(now_ms() < deadline, "waited in vain for: %s", #condition);              \
        }                                                                                          \
    } while (0)

/* n more bytes from one to the other. */
void move(struct rig *rig, struct side *from, struct side *to, size_t n);
/* Bytes until nothing more is taken, with some of them in a kernel pipe. */
void stuff(struct rig *rig, struct side *from);
