/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the test kit share. A test is a whole worker of the daemon's, in the role of a
 * single process, on a simulated kernel (event/sim.h). */
#pragma once

#include "event/sim.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <forkbeard/test.h>

/* Counts memory, and refuses some. */
struct fb_kit_memory {
    struct fb_memory memory;
    uint64_t asked;      /* allocations since the start */
    uint64_t held;       /* ... that were not released, also those before the start */
    uint64_t from, most; /* of those asked for, the first that is refused, and how many are */
    uint64_t refused;
};

/* The descriptors that are open at one time. */
struct fb_kit_descriptor {
    SLIST_ENTRY(fb_kit_descriptor) link;
    int fd;
    char what[128]; /* as /proc has it */
};
SLIST_HEAD(fb_kit_descriptors, fb_kit_descriptor);

struct fb_test_peer {
    STAILQ_ENTRY(fb_test_peer) link;
    fb_test *test;
    struct fb_sim_socket *socket;
    bool over; /* it has ended its half, or broken the connection */
};

struct fb_test_server {
    STAILQ_ENTRY(fb_test_server) link;
    fb_test *test;
    struct fb_address address;
    struct fb_sim_server *server;
};

struct fb_test {
    struct fb_worker worker; /* the first member */
    struct fb_kit_memory memory;
    struct fb_heritage heritage;
    struct fb_cycle *cycle;
    struct fb_shared *shared;
    struct fb_sim *sim;
    struct fb_sim_socket *door; /* the listener */
    int door_fd;
    struct fb_arena *arena;
    const fb_protocol *protocols[2]; /* that of the test, in the arena; ends with NULL */
    fb_ops own_ops;                  /* the protocol's, before they were watched */
    uint64_t openings, closings;     /* of clients' connections */
    void (*released)(struct fb_net *net);
    STAILQ_HEAD(, fb_test_peer) peers;
    STAILQ_HEAD(, fb_test_server) servers;
    in_port_t last_port; /* of clients */
    uint64_t random;
    struct fb_log_target target; /* the error log */
    char *logged;                /* what fb_test_logged() has lent */
    struct fb_kit_descriptors before;
    char label[128]; /* what lines of faults begin with */
    int faults;
    bool restless; /* it does not come to rest, which was said */
};

/* Prints and counts one. */
void fb_kit_fault(fb_test *test, const char *format, ...) FB_PRINTF(2, 3);
/* Ends the program: the test itself is wrong, or there is no memory for it. */
FB_NORETURN void fb_kit_misused(const char *format, ...) FB_PRINTF(1, 2);
/* Zeroed. */
void *fb_kit_alloc(size_t n);

void fb_kit_memory_init(struct fb_kit_memory *memory);

/* Those that are open now; to be freed by fb_kit_compare(), which says what has changed since. */
void fb_kit_look(struct fb_kit_descriptors *open);
void fb_kit_compare(fb_test *test, struct fb_kit_descriptors *before);

/* The descriptor of a file in memory that has this text. */
int fb_kit_file(const char *text);
/* All of it, to be freed. */
char *fb_kit_read(int fd);

/* As this version's header has them, also of an older or a newer one. */
fb_test_options fb_kit_options(const fb_test_options *options);

/* Reads the configuration; NULL after its mistakes were printed. */
struct fb_cycle *fb_kit_load(
    const fb_protocol *const *protocols, const fb_test_options *options, const char *label);

/* The network makes trouble from now on. */
void fb_kit_trouble(fb_test *test, uint64_t seed);

/* Counts how often the protocol's callbacks are told of a beginning and an end. */
void fb_kit_watch_ends(fb_test *test);

/* Slots of connections that have ended are not used again before this many others (slots.c). */
#define FB_KIT_SPARE_SLOTS 4096
/* Keeps them so, and their states from being touched. */
void fb_kit_guard_slots(fb_test *test);
void fb_kit_unguard_slots(fb_test *test);

/* The end of a connection that the program has made. */
fb_test_peer *fb_kit_add_peer(fb_test *test, struct fb_sim_socket *socket);
void fb_kit_forget_peers(fb_test *test);

/* Pseudo-random numbers below `below`. */
uint32_t fb_kit_any(uint64_t *state, uint32_t below);
