/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the simulated kernel share. */
#pragma once

#include "base/compiler.h"
#include "event/loop.h"
#include "support/fake.h"
#include "support/test.h"

/* No real descriptor reaches so far. */
#define FAKE_FIRST_FD 1000000

enum fake_kind { FAKE_BYTES, FAKE_STALL, FAKE_END, FAKE_BROKEN };

struct fake_step {
    STAILQ_ENTRY(fake_step) link;
    enum fake_kind kind;
    int error;
    size_t n, at;
    uint8_t bytes[];
};

struct fake_inner {
    struct fake_socket shown; /* the first member: what tests are given */
    STAILQ_ENTRY(fake_inner) link;
    STAILQ_HEAD(, fake_step) steps;
    struct fake_step *lent; /* whose bytes the latest recv has lent */
    int send_error;
    size_t sent_room;
    STAILQ_HEAD(, fake_inner) clients; /* of a listener: not accepted */
    STAILQ_ENTRY(fake_inner) client_link;
    bool owed;            /* is to be closed */
    struct fb_loop *loop; /* that watches it, or NULL */
    struct fb_source *source;
    bool watched[FB_DIRECTIONS], changed[FB_DIRECTIONS];
};

struct fake_kernel {
    STAILQ_HEAD(, fake_inner) sockets;
    int next_fd;
    uint64_t mono_ms;
    unsigned reported;
    int timeout, refusal;
    void (*waiting)(struct fb_loop *loop, int timeout);
};

extern struct fake_kernel fake_kernel;
extern const struct fb_io_ops fake_io;

/* NULL where there is no such descriptor. */
struct fake_inner *fake_find(int fd);
/* The open socket behind a source. */
struct fake_inner *fake_of(const struct fb_source *source);
/* Has what comes first received. */
void fake_drop_first(struct fake_inner *s);
