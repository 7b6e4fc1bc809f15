/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs and functions that the files of the test kit share. A test is a whole worker of the
 * daemon's, in the role of a single process, on a simulated kernel (sim/sim.h); nothing of it is
 * shared with another test, so that several may live in one program. A mistake of the protocol is a
 * fault, which is printed and counted; a mistake in the use of the kit ends the program. */
#pragma once

#include "base/check.h"
#include "sim/sim.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <forkbeard/test.h>

/* The memory of connections: counts allocations, and makes chosen ones fail. */
struct kit_memory {
    struct memory memory;
    uint64_t requested;  /* allocations that were requested since the start */
    uint64_t live;       /* allocations not released, those before the start included */
    uint64_t from, most; /* number of the first allocation that fails, and how many fail */
    uint64_t refused;    /* allocations that have failed */
};

/* An entry of a list of open descriptors. */
#define KIT_FILE_PATH 160

struct kit_descriptor {
    SLIST_ENTRY(kit_descriptor) link;
    int fd;
    char what[128]; /* the file, as the system names it */
};
SLIST_HEAD(kit_descriptors, kit_descriptor);

#define KIT_PEER KIND('K', 'P', 'E', 'R')
#define KIT_SERVER KIND('K', 'S', 'R', 'V')
#define KIT_TEST KIND('K', 'T', 'S', 'T')

/* The program's end of a connection. */
struct fb_test_peer {
    unsigned kind; /* KIT_PEER */
    STAILQ_ENTRY(fb_test_peer) link;
    fb_test *test;
    struct sim_socket *socket;
    bool over; /* sends nothing more: its half has ended, or the connection is broken */
};

struct fb_test_server {
    unsigned kind; /* KIT_SERVER */
    STAILQ_ENTRY(fb_test_server) link;
    fb_test *test;
    struct address address;
    struct sim_server *server;
};

struct fb_test {
    struct fb_worker worker; /* the first member */
    unsigned kind;           /* KIT_TEST, from its creation to its end */
    struct kit_memory memory;
    struct heritage heritage;
    struct cycle *cycle;
    struct shared *shared;
    struct sim *sim;
    struct sim_socket *listener;
    int listener_fd; /* a real descriptor, which the worker closes; -1 then */
    struct arena *arena;
    const fb_protocol *protocols[2]; /* the test's copy, in the arena; NULL */
    fb_ops own_ops;              /* the protocol's callbacks, before the kit's took their place */
    uint64_t openings, closings; /* of clients' connections */
    STAILQ_HEAD(, fb_test_peer) peers;
    STAILQ_HEAD(, fb_test_server) servers;
    in_port_t port_n; /* ports given to clients so far */
    uint64_t random;
    struct log_target target; /* the error log, a file in memory */
    char *logged;             /* the text that fb_test_logged() has lent */
    char log_path[KIT_FILE_PATH];
    struct kit_descriptors before; /* open before the start */
    char label[128];               /* the beginning of lines about faults */
    int faults;
    bool restless; /* the worker never became idle, which was reported as a fault */
};

/* The test that a worker is a part of. */
static inline fb_test *kit_test_of(struct fb_worker *worker)
{
    fb_test *test = container_of(worker, struct fb_test, worker);

    CHECK_KIND(test, KIT_TEST);
    return test;
}

/* Prints a line about a fault, and counts it. */
void kit_fault(fb_test *test, const char *format, ...) PRINTF_FORMAT(2, 3);
/* Ends the program: the test itself is wrong, or there is no memory for it. */
NORETURN void kit_misused(const char *format, ...) PRINTF_FORMAT(1, 2);
/* Returns zeroed memory; ends the program if there is none. */
void *kit_alloc(size_t n);

void kit_memory_init(struct kit_memory *memory);

/* Lists the descriptors that are open now; kit_descriptors_compare() frees the list, with a fault
 * for each descriptor that was opened or closed since. */
void kit_descriptors_list(struct kit_descriptors *open);
/* Adds one that is open to a list; `what` is its file. */
void kit_descriptors_add(struct kit_descriptors *open, int fd, const char *what);
void kit_descriptors_compare(fb_test *test, struct kit_descriptors *before);

/* Creates a file with this text, in memory where the system can; returns its descriptor, and writes
 * a path of it. The caller closes both. */
int kit_file_create(const char *text, char path[KIT_FILE_PATH]);
void kit_file_close(int fd, const char *path);
/* Returns the whole text of a file, which the caller frees. */
char *kit_file_read(int fd);

/* Copies the options of a caller that may be built for another version of the header. */
fb_test_options kit_options(const fb_test_options *options);

/* Reads the configuration; NULL after its mistakes were printed. */
struct cycle *kit_conf_load(
    const fb_protocol *const *protocols, const fb_test_options *options, const char *label);

/* Makes trouble on the network from now on. */
void kit_trouble(fb_test *test, uint64_t seed);

/* Installs callbacks that count `opened` and `closed` and then call the protocol's. */
void kit_watch_callbacks(fb_test *test);

/* The number of connections that must end before the slot of an ended one is used again. */
#define KIT_SPARE_SLOTS 4096
/* Keeps slots of ended connections unused, and their states untouched (slots.c). */
void kit_slots_guard(fb_test *test);
void kit_slots_unguard(fb_test *test);

/* Makes the program's end of a connection; it lives as long as the test. */
fb_test_peer *kit_peer_add(fb_test *test, struct sim_socket *socket);
/* Frees all peers and servers. */
void kit_peers_free(fb_test *test);

/* A pseudo-random number below `below`, which is at least 1. */
uint32_t kit_random(uint64_t *state, uint32_t below);
