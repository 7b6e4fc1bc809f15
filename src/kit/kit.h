/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs and functions that the files of the test kit share. A test is a whole worker of the
 * daemon's, in the role of a single process, or several, whose master the kit is, on a simulated
 * kernel (sim/sim.h); nothing of it is shared with another test, so that several may live in one
 * program. A mistake of the protocol is a fault, which is printed and counted; a mistake in the use
 * of the kit ends the program. */
#pragma once

#include "base/check.h"
#include "process/heritage.h"
#include "sim/sim.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <forkbeard/test.h>

/* The memory of connections: counts allocations, and makes chosen ones fail. */
struct kit_memory {
    struct memory memory;
    uint64_t requested;  /* allocations that were requested since the start */
    uint64_t live;       /* unreleased allocations, including allocations before the start */
    uint64_t from, most; /* number of the first allocation that fails, and how many fail */
    uint64_t refused;    /* allocations that have failed */
    bool is_watched;     /* a sanitizer sees wrong uses of it: blocks have no zones */
    uint8_t *kept[64];   /* blocks that have ended, a ring */
    unsigned kept_at;
};

#define KIT_FILE_PATH 160

#define KIT_PEER KIND('K', 'P', 'E', 'R')
#define KIT_SERVER KIND('K', 'S', 'R', 'V')
#define KIT_TEST KIND('K', 'T', 'S', 'T')

struct kit_tls;

/* The program's end of a connection. */
struct fb_test_peer {
    unsigned kind; /* KIT_PEER */
    STAILQ_ENTRY(fb_test_peer) link;
    fb_test *test;
    struct sim_socket *socket;
    bool over;           /* sends nothing more: its half has ended, or the connection is broken */
    bool is_server;      /* accepted by a server of the program; else a client */
    struct kit_tls *tls; /* NULL: no TLS was begun */
};

struct fb_test_server {
    unsigned kind; /* KIT_SERVER */
    STAILQ_ENTRY(fb_test_server) link;
    fb_test *test;
    struct address address;
    struct sim_server *server;
};

/* Servers and protocols of a configuration, at most. */
#define KIT_SERVERS_MAX 16
#define KIT_PROTOCOLS_MAX 16
#define KIT_WORKERS_MAX 64

/* The address of all servers, 192.0.2.80, and the port of server 0; the next servers' follow. */
#define KIT_ADDRESS 0xc0000250
#define KIT_FIRST_PORT 80

/* The access log, in the configuration alone: its lines are written to a file in memory. */
#define KIT_ACCESS_PATH "/forkbeard-test/access"

#define KIT_WORKER KIND('K', 'W', 'R', 'K')

/* A worker, over all its lives. */
struct kit_worker {
    struct worker worker; /* the first member; all zero without a life */
    unsigned kind;        /* KIT_WORKER, from the test's creation to its end */
    fb_test *test;
    unsigned number;
    bool alive;      /* lives: from a successful start to the death or end */
    bool is_killed;  /* within its death: nobody sees its actions */
    char label[128]; /* the beginning of its log lines */
    struct heritage heritage;
    struct cycle *cycle;                           /* a separate reading of the configuration */
    struct sim_socket *listeners[KIT_SERVERS_MAX]; /* the servers', over all lives */
    int fds[KIT_SERVERS_MAX];    /* real descriptors behind the listeners, kept over all lives */
    int handed[KIT_SERVERS_MAX]; /* the same, as the worker has them */
    int channel;                 /* the master's end of its channel; -1: none */
    int inbox;                   /* the sending end of the inbox; -1: not requested yet */
    unsigned jobs;               /* jobs of fb_run(), when they were last counted */
};

/* A message between workers, on its way. */
struct kit_packet {
    STAILQ_ENTRY(kit_packet) link;
    size_t n;
    uint8_t bytes[];
};

/* The way of messages between two workers. */
struct kit_way {
    fb_test_way how;
    int fd; /* the sender's packets are received there; -1: it has not asked for the way */
    STAILQ_HEAD(, kit_packet) packets;
};

struct fb_test {
    unsigned kind; /* KIT_TEST, from its creation to its end */
    struct kit_memory memory;
    fb_test_options options; /* with strings in the arena */
    bool several;            /* workers of a master, and not a single process */
    unsigned worker_n;
    struct kit_worker *workers;
    struct kit_way *ways; /* worker_n of each worker, in worker order */
    struct bells bells;
    struct cycle *cycle;          /* the master's */
    const struct cycle *accepted; /* the configuration whose hooks were called; or NULL */
    struct shared *shared;
    struct sim *sim;
    struct arena *arena;
    const fb_protocol *protocols[KIT_PROTOCOLS_MAX + 1]; /* copies, in the arena; ends with NULL */
    fb_ops own_ops[KIT_PROTOCOLS_MAX];                   /* their callbacks, without the kit's */
    uint64_t openings, closings;                         /* of clients' connections */
    uint64_t became_n; /* connections of ended workers with a changed protocol */
    STAILQ_HEAD(, fb_test_peer) peers;
    STAILQ_HEAD(, fb_test_server) servers;
    STAILQ_HEAD(, kit_name_server) name_servers;
    STAILQ_HEAD(, kit_name_socket) name_sockets;
    STAILQ_HEAD(, kit_record) records; /* names that the servers of names know */
    fb_test_reply names_reply;
    fb_test_keeping keeper;
    in_port_t port_n; /* ports given to clients so far */
    uint64_t random;
    bool dawdles;        /* messages between workers come late, at times */
    uint64_t way_random; /* ... by numbers of this seed */
    uint64_t loss_at;    /* the number of a message between workers that is lost, from 1; 0: none */
    uint64_t message_n, loss_n; /* carried messages, and the messages lost by loss_at */
    uint64_t began;             /* monotonic ms of the start */
    uint64_t job_ms;            /* the time that a job of fb_run() takes */
    uint64_t jobs_due;          /* monotonic ms when the jobs under way have ended */
    struct log_target target;   /* the error log, a file in memory */
    char *logged;               /* the text that fb_test_logged() has lent */
    char log_path[KIT_FILE_PATH];
    int access_fd;  /* the access log, another one */
    char *accessed; /* the text that fb_test_access_log() has lent */
    char access_path[KIT_FILE_PATH];
    char *descriptors; /* open before the start, as text */
    char label[128];   /* the beginning of lines about faults */
    int faults;
    bool restless; /* a worker never became idle, which was reported as a fault */
};

/* The kit's part of a worker. */
static inline struct kit_worker *kit_worker_of(struct worker *worker)
{
    struct kit_worker *own = container_of(worker, struct kit_worker, worker);

    CHECK_KIND(own, KIT_WORKER);
    return own;
}

/* The test of a worker. */
static inline fb_test *kit_test_of(struct worker *worker)
{
    fb_test *test = kit_worker_of(worker)->test;

    CHECK_KIND(test, KIT_TEST);
    return test;
}

static inline struct loop *kit_loop_of(struct kit_worker *own)
{
    return &own->worker.stream.net.loop;
}

#define KIT_FOREACH_ALIVE(own, test)                                                               \
    for ((own) = (test)->workers; (own) < (test)->workers + (test)->worker_n; (own)++)             \
        if ((own)->alive)

static inline struct kit_way *kit_way(fb_test *test, unsigned from, unsigned to)
{
    assert(from < test->worker_n && to < test->worker_n);
    return &test->ways[from * test->worker_n + to];
}

/* Prints a line about a fault, and counts the fault. */
void kit_fault(fb_test *test, const char *format, ...) PRINTF_FORMAT(2, 3);
/* Ends the program: the test itself is wrong, or there is no memory for it. */
NORETURN void kit_misused(const char *format, ...) PRINTF_FORMAT(1, 2);
/* Returns zeroed memory; ends the program if there is none. */
void *kit_alloc(size_t n);
/* Creates a file with the text, in memory where the system can; returns the descriptor and writes a
 * path, both for os_temporary_close(). */
int kit_file_create(const char *text, char path[KIT_FILE_PATH]);
/* Returns the whole text of a file; the caller frees the text. */
char *kit_file_read(int fd);

void kit_memory_init(struct kit_memory *memory);
void kit_memory_done(struct kit_memory *memory);

/* Copies the options of a caller, possibly built for a different version of the header. */
fb_test_options kit_options(const fb_test_options *options);
/* Copies the strings of options into an arena. */
void kit_options_keep(fb_test_options *options, struct arena *arena);
unsigned kit_options_servers(const fb_test_options *options);
/* Reads the configuration; NULL after printed mistakes. */
struct cycle *kit_conf_load(
    const fb_protocol *const *protocols, const fb_test_options *options, const char *label);

/* A start, as a conversation has it. */
struct kit_start {
    const fb_protocol *protocol;
    const fb_test_options *options;
    const char *variant; /* for lines about faults; NULL: none */
    bool refuses;        /* an allocation before the workers serve fails */
    uint64_t after;      /* number of allocations that succeed before it */
    bool refused;        /* out: it was made */
    int faults;          /* out: of a start that has failed */
};

/* Implements fb_test_start_with(). A start failing for a deliberately refused allocation is silent,
 * but for faults. */
fb_test *kit_test_start(struct kit_start *start);
/* Makes trouble on the network from now on. */
void kit_trouble(fb_test *test, uint64_t seed);

/* Starts a life of a worker; -1 after lines in the log. */
int kit_worker_start(struct kit_worker *own);
void kit_worker_end(struct kit_worker *own);
/* Waits, in real time, until a job of the worker's has ended. */
void kit_worker_await_job(struct kit_worker *own);

/* Does the master's part: answers workers, carries messages and rings bells. Returns whether a
 * worker has work because of that, or the master will have. */
bool kit_master_serve(fb_test *test);
/* Reports a worker's death, and the loss of unread messages, to all workers. */
void kit_master_tell_gone(fb_test *test, struct kit_worker *gone);
/* Carries all messages of the worker, also on late or lossy ways. */
void kit_ways_flush(fb_test *test, struct kit_worker *from);
/* Drops the messages from and to a worker. */
void kit_ways_clear(fb_test *test, struct kit_worker *own);

/* Number of connections to end before the slot of an ended connection is used again. */
#define KIT_SPARE_SLOTS 4096
/* Keeps slots of ended connections unused, with untouched states. */
void kit_slots_guard(struct worker *worker);
void kit_slots_unguard(struct worker *worker);
/* Makes room for a zone behind each state of `copy`, the test's copy of a protocol. */
void kit_states_widen(const fb_protocol *copy);
/* Looks at the zones of all connections. */
void kit_states_check(struct kit_worker *own);
/* Installs callbacks counting `opened` and `closed` before the protocols' callbacks run. */
void kit_watch_callbacks(fb_test *test);

/* Sets how a worker's engine of TLS behaves, as the test says. */
void kit_keeper_set(struct kit_worker *own);

/* Frees all peers and servers. */
void kit_peers_free(fb_test *test);

/* Opens the name servers of a worker's configuration, and the system's. */
void kit_names_open(fb_test *test, struct cycle *cycle);
/* Answers the questions that have come. */
void kit_names_serve(fb_test *test);
void kit_names_free(fb_test *test);
