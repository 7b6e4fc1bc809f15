/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a client over c-ares. The library knows a socket by its place in our table,
 * because a simulated kernel has no descriptors. Behind a place stands a connection, or a port for
 * each datagram, so that no two questions have the same source port.
 *
 * Limits the sockets, hands to the library only datagrams with the number of their port's question,
 * and closes a gap: 1.18 takes an empty datagram for the end of all questions. */
#pragma once

#include "event/loop.h"
#include "names/client.h"

#include <ares.h>
#include <bsd/sys/queue.h>

#define CLIENT_KIND KIND('A', 'R', 'E', 'S')
#define CLIENT_PLACES 40 /* two for each of 16 servers, and room for the system's */

/* A socket as the library has it. */
struct client_socket {
    struct names_client *client;
    struct client_port *stream; /* the connection; NULL: there are ports of datagrams */
    bool in_use;
    socklen_t peer_n;
    struct sockaddr_storage peer;
};

/* A connection, or the socket of a datagram and of the reply. */
struct client_port {
    struct source_ops ops; /* the source's, which lead to the struct */
    struct client_socket *socket;
    struct source *source;
    bool drained; /* the latest recv has found nothing */
    /* of a datagram */
    TAILQ_ENTRY(client_port) link;
    LIST_ENTRY(client_port) own; /* in the question's list */
    struct client_asked *asked;  /* NULL: the question is not known, or has ended */
    uint64_t opened_ms;
    uint8_t id[2]; /* the question's number, as messages have it */
};

/* A question that the library has. */
struct client_asked {
    struct names_client *client;
    LIST_HEAD(, client_port) ports;
    void *arg;
};

struct names_client {
    unsigned kind;
    struct loop *loop;
    ares_channel channel;
    names_client_replied *replied;
    struct timer timer;              /* the library's */
    TAILQ_HEAD(, client_port) ports; /* datagrams', the oldest first */
    struct client_port *reading;     /* the port that the library receives from */
    struct client_asked *asking;     /* within names_client_ask() */
    unsigned socket_n, socket_most;  /* connections and ports */
    unsigned asked_n;                /* questions that the library has */
    uint64_t credit, credit_ms; /* a new question takes NAMES_CLIENT_PACE_MS; as of that time */
    bool searches;              /* the system's search list is used */
    bool ending;
    struct client_socket places[CLIENT_PLACES];
};

/* Prepares the client, after its fields are set, to open the channel's sockets. */
void client_sockets_init(struct names_client *client);
/* Ends the timer. The library has closed the sockets. */
void client_sockets_done(struct names_client *client);
/* Counts a question that is asked. */
void client_sockets_take_credit(struct names_client *client);
/* Closes the ports of an ended question. */
void client_sockets_end(struct client_asked *asked);
/* For the channel's options: the library waits for a different event, or is about to close. */
void client_sockets_changed(void *client, ares_socket_t handle, int readable, int writable);
