/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the simulation. The harness has a struct sim_socket, which is the first
 * member of the endpoint that the files here know. */
#pragma once

#include "base/check.h"
#include "base/compiler.h"
#include "event/loop.h"
#include "sim/sim.h"
#include "tls/record.h"

/* The first simulated descriptor, beyond all real descriptors. */
#define SIM_FIRST_FD 1000000

enum sim_step_kind { SIM_STEP_BYTES, SIM_STEP_STALL, SIM_STEP_END, SIM_STEP_BROKEN };

/* An arrival at an endpoint, in the order of receiving. */
struct sim_step {
    STAILQ_ENTRY(sim_step) link;
    enum sim_step_kind kind;
    int error;
    size_t n, at; /* bytes, and received bytes among n */
    uint8_t bytes[];
};

/* An endpoint that a loop watches. */
struct sim_watch {
    TAILQ_ENTRY(sim_watch) loop_link;
    TAILQ_ENTRY(sim_watch) socket_link;
    struct sim_loop *loop;
    struct sim_endpoint *socket;
    struct source *source;
    bool listening;
    bool watched[EVENT_DIRECTIONS];
    bool changed[EVENT_DIRECTIONS]; /* an edge has not been reported */
    bool broken;                    /* the error of both directions was reported */
};

TAILQ_HEAD(sim_watches, sim_watch);

struct sim_endpoint {
    struct sim_socket view; /* the first member: the harness's view */
    RB_ENTRY(sim_endpoint) node;
    struct sim *sim;
    STAILQ_HEAD(, sim_step) steps;
    struct sim_step *lent; /* the step whose bytes the latest recv has lent, or NULL */
    size_t sent_room;
    size_t lost; /* bytes that a reset has taken back */
    int send_error;
    bool over;                 /* the harness has ended or broken the input */
    bool must_close;           /* the program has the descriptor, not closed yet */
    struct sim_server *server; /* the server of its connect(), or NULL */
    bool connecting;           /* the server has not answered */
    int connect_error;
    STAILQ_HEAD(, sim_endpoint) clients;  /* a listener's, not accepted */
    STAILQ_ENTRY(sim_endpoint) line_link; /* in a listener's or a server's line */
    struct sim_watches watches;
    struct sim_seal *seal; /* keys of the output (seal.c), or NULL */
};

#define SIM_LOOP_KIND KIND('s', 'i', 'm', 'l')

/* A loop's mechanism_state, and the io_state of its sources. */
struct sim_loop {
    unsigned kind;
    struct sim *sim;
    struct sim_watches watches;
};

/* The patterns of a simulation's mechanisms. */
extern const struct mechanism sim_mechanism_edge, sim_mechanism_level;
extern const struct io_ops sim_io, sim_io_splicing;

/* Records a mistake of the program, and calls the harness's `on_fault`. */
void sim_fault(struct sim *sim, int fd, const char *format, ...) PRINTF_FORMAT(3, 4);
bool sim_happens(struct sim *sim, unsigned per_mille);
/* Adds bytes to the digest. */
void sim_record(struct sim *sim, const void *p, size_t n);

/* Creates an endpoint with the next free descriptor, or (fd is not -1) with that descriptor. */
struct sim_endpoint *sim_endpoint_create(struct sim *sim, int fd);
void sim_endpoint_free(struct sim_endpoint *s);
void sim_endpoints_free(struct sim *sim);
struct sim_endpoint *sim_endpoint_find(struct sim *sim, int fd);
/* Returns the open endpoint behind a source; NULL after a fault. */
struct sim_endpoint *sim_endpoint_of(const struct source *source, const char *operation);
void sim_endpoint_check(const struct sim_endpoint *s);
void sim_unwatch(struct sim_watch *watch);
/* Marks a direction as changed, for every loop that watches the endpoint. */
void sim_mark_changed(struct sim_endpoint *s, enum event_direction direction);
/* Appends a step of n bytes; NULL when the connection is broken. */
struct sim_step *sim_append_step(struct sim_endpoint *s, enum sim_step_kind kind, size_t n);
/* Removes the first step, already received. */
void sim_pop_step(struct sim_endpoint *s);
/* Returns the first step of a kind; NULL: there is none. */
struct sim_step *sim_find_step(const struct sim_endpoint *s, enum sim_step_kind kind);
/* Whether the connection is broken both ways. */
bool sim_is_broken(const struct sim_endpoint *s);
/* Breaks the connection in both directions, at once: what has arrived is lost. */
void sim_break_both(struct sim_endpoint *s, int error);
/* A reset, from either side, takes back queued bytes. */
void sim_lose_queued(struct sim_endpoint *s);

/* Appends to the sent bytes, and to the digest. */
void sim_append_sent(struct sim_endpoint *s, const uint8_t *p, size_t n);

/* Keys of an endpoint's output, and what they have sealed. */
struct sim_seal {
    struct ciphers *ciphers;
    const struct tls_suite *suite;
    struct tls_keys keys;
    uint8_t *bytes; /* without room in the socket */
    size_t n;
};

struct sim_seal *sim_seal_create(const struct os_tls_keys *keys);
/* Appends bytes, sealed in the fewest records. */
void sim_seal_add(struct sim_seal *seal, enum tls_type type, const uint8_t *p, size_t n);
/* Drops the first bytes: they have room. */
void sim_seal_drop(struct sim_seal *seal, size_t n);
void sim_seal_free(struct sim_seal *seal);

/* Operations of struct io_ops. */
int sim_io_seal(struct source *source, const struct os_tls_keys *keys, struct io_sealing *sealing);
struct io_result sim_io_send_record(
    struct source *source, uint8_t type, const uint8_t *p, size_t n);
enum io_sealed sim_io_sealed(const struct source *source, struct io_sealing *sealing);
/* Moves sealed bytes to the socket, up to the socket's room. */
void sim_io_push_sealed(struct sim_endpoint *s);

/* Creates an endpoint on its way to the server of the address. */
struct sim_endpoint *sim_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options);

/* Returns the simulated loop of a source. */
static inline struct sim_loop *sim_loop_of(const struct source *source)
{
    struct sim_loop *loop = source->io_state;

    CHECK_KIND(loop, SIM_LOOP_KIND);
    return loop;
}

/* Returns the endpoint of the harness's socket. */
static inline struct sim_endpoint *sim_endpoint_by(const struct sim_socket *socket)
{
    return container_of(socket, struct sim_endpoint, view);
}
