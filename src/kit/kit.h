/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs and functions that the files of the test kit share. A test is a whole worker of the
 * daemon's, in the role of a single process, on a simulated kernel (event/sim.h); nothing of it is
 * shared with another test, so that several may live in one program. Mistakes of the protocol are
 * faults, which are printed and counted; a mistake in the use of the kit ends the program. */
#pragma once

#include "base/check.h"
#include "event/sim.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <forkbeard/test.h>

/* The memory of connections: counts it, and refuses some. */
struct fb_kit_memory {
    struct fb_memory memory;
    uint64_t asked;      /* allocations that were asked for since the start */
    uint64_t held;       /* allocations not released, those before the start included */
    uint64_t from, most; /* number of the first that is refused, and how many are */
    uint64_t refused;    /* allocations that were */
};

/* A descriptor in a list of those that were open at one time. */
struct fb_kit_descriptor {
    SLIST_ENTRY(fb_kit_descriptor) link;
    int fd;
    char what[128]; /* the file, as /proc shows it */
};
SLIST_HEAD(fb_kit_descriptors, fb_kit_descriptor);

#define KIT_PEER KIND('K', 'P', 'E', 'R')
#define KIT_SERVER KIND('K', 'S', 'R', 'V')
#define KIT_TEST KIND('K', 'T', 'S', 'T')

/* The program's end of a connection. */
struct fb_test_peer {
    unsigned kind; /* KIT_PEER */
    STAILQ_ENTRY(fb_test_peer) link;
    fb_test *test;
    struct fb_sim_socket *socket;
    bool over; /* says nothing more: its half has ended, or the connection is broken */
};

struct fb_test_server {
    unsigned kind; /* KIT_SERVER */
    STAILQ_ENTRY(fb_test_server) link;
    fb_test *test;
    struct fb_address address;
    struct fb_sim_server *server;
};

struct fb_test {
    struct fb_worker worker; /* the first member */
    unsigned kind;           /* KIT_TEST, from its creation to its end */
    struct fb_kit_memory memory;
    struct fb_heritage heritage;
    struct fb_cycle *cycle;
    struct fb_shared *shared;
    struct fb_sim *sim;
    struct fb_sim_socket *listener;
    int listener_fd; /* a real descriptor, which the worker closes; -1 then */
    struct fb_arena *arena;
    const fb_protocol *protocols[2]; /* the test's copy, in the arena; NULL */
    fb_ops own_ops;              /* the protocol's callbacks, before the kit's took their place */
    uint64_t openings, closings; /* of clients' connections */
    void (*released)(struct fb_net *net);
    STAILQ_HEAD(, fb_test_peer) peers;
    STAILQ_HEAD(, fb_test_server) servers;
    in_port_t port_n; /* ports given to clients so far */
    uint64_t random;
    struct fb_log_target target;      /* the error log, a file in memory */
    char *logged;                     /* the text that fb_test_logged() has lent */
    struct fb_kit_descriptors before; /* open before the start */
    char label[128];                  /* the beginning of lines about faults */
    int faults;
    bool restless; /* the worker never came to rest, and a fault said so */
};

/* The test that a worker is a part of. */
static inline fb_test *kit_test_of(struct fb_worker *worker)
{
    fb_test *test = fb_container(worker, struct fb_test, worker);

    CHECK_KIND(test, KIT_TEST);
    return test;
}

/* Prints a line about a fault, and counts it. */
void fb_kit_fault(fb_test *test, const char *format, ...) FB_PRINTF(2, 3);
/* Ends the program: the test itself is wrong, or there is no memory for it. */
FB_NORETURN void fb_kit_misused(const char *format, ...) FB_PRINTF(1, 2);
/* Zeroed memory; ends the program without. */
void *fb_kit_alloc(size_t n);

void fb_kit_memory_init(struct fb_kit_memory *memory);

/* Lists the descriptors that are open now; fb_kit_compare() frees the list, with a fault for each
 * descriptor that was opened or closed since. */
void fb_kit_look(struct fb_kit_descriptors *open);
void fb_kit_compare(fb_test *test, struct fb_kit_descriptors *before);

/* A file in memory that holds this text: its descriptor, which the caller closes. */
int fb_kit_file(const char *text);
/* The whole text of a file, which the caller frees. */
char *fb_kit_read(int fd);

/* A copy of the options as this version's header has them, whichever version's they are. */
fb_test_options fb_kit_options(const fb_test_options *options);

/* Reads the configuration; NULL after its mistakes were printed. */
struct fb_cycle *fb_kit_load(
    const fb_protocol *const *protocols, const fb_test_options *options, const char *label);

/* Makes trouble on the network from now on. */
void fb_kit_trouble(fb_test *test, uint64_t seed);

/* Puts callbacks before the protocol's that count `opened` and `closed`. */
void fb_kit_watch_ends(fb_test *test);

/* Connections that end before the slot of one that has ended is used again. */
#define FB_KIT_SPARE_SLOTS 4096
/* Keeps slots of ended connections unused, and their states untouched (slots.c). */
void fb_kit_guard_slots(fb_test *test);
void fb_kit_unguard_slots(fb_test *test);

/* Makes the program's end of a connection; it lives as long as the test. */
fb_test_peer *fb_kit_add_peer(fb_test *test, struct fb_sim_socket *socket);
/* Frees all peers and servers. */
void fb_kit_forget_peers(fb_test *test);

/* A pseudo-random number below `below`, which is at least 1. */
uint32_t fb_kit_any(uint64_t *state, uint32_t below);
