/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the simulation share. */
#pragma once

#include "base/compiler.h"
#include "event/loop.h"
#include "sim/sim.h"

#include <bsd/sys/tree.h>

/* No real descriptor reaches so far. */
#define FB_SIM_FIRST_FD 1000000

enum fb_sim_kind { FB_SIM_BYTES, FB_SIM_STALL, FB_SIM_END, FB_SIM_BROKEN };

/* Something that has arrived. */
struct fb_sim_step {
    STAILQ_ENTRY(fb_sim_step) link;
    enum fb_sim_kind kind;
    int error;
    size_t n, at;
    uint8_t bytes[];
};

/* A socket that a loop watches. */
struct fb_sim_watch {
    TAILQ_ENTRY(fb_sim_watch) loop_link;
    TAILQ_ENTRY(fb_sim_watch) socket_link;
    struct fb_sim_loop *of;
    struct fb_sim_inner *socket;
    struct fb_source *source;
    bool listening;
    bool watched[FB_DIRECTIONS];
    bool changed[FB_DIRECTIONS]; /* an edge has not been reported */
};

TAILQ_HEAD(fb_sim_watches, fb_sim_watch);

struct fb_sim_inner {
    struct fb_sim_socket shown; /* the first member: what the harness is given */
    RB_ENTRY(fb_sim_inner) node;
    struct fb_sim *sim;
    STAILQ_HEAD(, fb_sim_step) steps;
    struct fb_sim_step *lent; /* whose bytes the latest recv has lent */
    size_t sent_room;
    int send_error;
    bool over;                    /* the harness has ended or broken it */
    bool owed;                    /* is to be closed */
    struct fb_sim_server *server; /* that it was connected to, or NULL */
    bool connecting;
    int connect_error;
    STAILQ_HEAD(, fb_sim_inner) clients;  /* of a listener: not accepted */
    STAILQ_ENTRY(fb_sim_inner) line_link; /* among those, or of a server */
    struct fb_sim_watches watches;
};

RB_HEAD(fb_sim_sockets, fb_sim_inner);

struct fb_sim_fault {
    STAILQ_ENTRY(fb_sim_fault) link;
    char text[];
};

/* A loop's mechanism_state, and the io_state of its sources. */
struct fb_sim_loop {
    struct fb_sim *sim;
    struct fb_sim_watches watches;
};

struct fb_sim {
    struct fb_mechanism edge, level; /* whose `self` it is */
    struct fb_sim_sockets sockets;
    STAILQ_HEAD(, fb_sim_server) servers;
    int next_fd;
    unsigned loop_n;
    struct fb_clock clock;
    bool passes_by_itself;
    struct fb_sim_trouble trouble;
    uint64_t random, digest;
    unsigned reported;
    int timeout, refusal;
    void (*waiting)(struct fb_loop *loop, int timeout);
    STAILQ_HEAD(, fb_sim_fault) faults;
    unsigned fault_n;
    void (*fault)(void *arg, const char *text);
    void *fault_arg;
};

/* What fb_sim_create() makes its mechanisms of. */
extern const struct fb_mechanism fb_mechanism_sim, fb_mechanism_sim_level;
extern const struct fb_io_ops fb_io_sim;

/* The program's mistake. */
void fb_sim_fault(struct fb_sim *sim, int fd, const char *format, ...) FB_PRINTF(3, 4);
/* Whether a trouble comes now. */
bool fb_sim_happens(struct fb_sim *sim, unsigned per_mille);
/* Goes into the digest. */
void fb_sim_record(struct fb_sim *sim, const void *p, size_t n);

/* With the next free descriptor, or (fd is not -1) with that one. */
struct fb_sim_inner *fb_sim_socket_create(struct fb_sim *sim, int fd);
void fb_sim_socket_free(struct fb_sim_inner *s);
/* NULL where there never was such a descriptor. */
struct fb_sim_inner *fb_sim_find(struct fb_sim *sim, int fd);
/* The open socket behind a source; NULL after a fault. */
struct fb_sim_inner *fb_sim_socket_of(const struct fb_source *source, const char *operation);
/* Something new is there in that direction. */
void fb_sim_changed(struct fb_sim_inner *s, enum fb_direction direction);
/* Has what comes first received. */
void fb_sim_drop_first(struct fb_sim_inner *s);
/* Ends it at once, in both directions. */
void fb_sim_break_both(struct fb_sim_inner *s, int error);
/* Keeps what was sent. */
void fb_sim_keep_sent(struct fb_sim_inner *s, const uint8_t *p, size_t n);
void fb_sim_unwatch(struct fb_sim_watch *watch);

/* Sets the clocks to where every simulation begins (clock.c). */
void sim_clock_init(struct fb_clock *clock);
/* The mechanism's read_clock(): copies the simulation's time into the loop's. */
void sim_clock_read(struct fb_loop *loop);

/* A socket on its way to the server of the address (server.c). */
struct fb_sim_inner *fb_sim_connect(
    struct fb_source *source, const struct sockaddr *address, socklen_t length);
/* Whether its connect() itself says how it ended. */
bool fb_sim_server_is_quick(const struct fb_sim_inner *s);
void fb_sim_servers_free(struct fb_sim *sim);

static inline bool fb_sim_is_ready(const struct fb_sim_inner *s, enum fb_direction direction)
{
    if (direction == FB_READ)
        return !STAILQ_EMPTY(&s->steps);
    return !s->connecting && (s->shown.room > 0 || s->send_error != 0);
}
