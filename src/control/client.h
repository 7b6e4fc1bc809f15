/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the control socket. Private to control/. The phase tells the awaited event;
 * control_client_set() alone changes the phase, and keeps the timer that cuts off slow clients. */
#pragma once

#include "base/check.h"
#include "control/control.h"

#include <bsd/sys/queue.h>

#define CONTROL_REQUEST_MAX 65536 /* bytes of a request */
#define CONTROL_PATIENCE_MS 30000 /* to ask, or to take the reply */
/* Most clients at once. More than may wait: always some can give way. */
#define CONTROL_CLIENTS_MAX 32
#define CONTROL_WAITING_MAX 16 /* clients that await an outcome */
#define CONTROL_CLIENT_KIND KIND('C', 'C', 'l', 'i')

enum client_phase {
    CLIENT_READING,    /* a request is awaited */
    CLIENT_WAITING,    /* the command is under way; see waiting_for */
    CLIENT_REPLYING,   /* a reply is being sent, then the next request is read */
    CLIENT_LAST_REPLY, /* a reply is being sent, then the connection is closed */
    CLIENT_HELD,       /* connected until the master has gone: the kernel closes the connection */
    CLIENT_CLOSING,    /* to be destroyed */
    CLIENT_PHASES,
};

/* Outcome of one step of an exchange. */
enum client_step { CLIENT_DONE, CLIENT_BLOCKED, CLIENT_GONE };

struct control_client {
    unsigned kind;
    TAILQ_ENTRY(control_client) link;
    struct control *control;
    enum client_phase phase;
    enum control_wait waiting_for; /* CONTROL_WAIT_NONE but in WAITING, for the exit and events */
    int fd;
    pid_t pid;
    uint64_t event_n;      /* number of the latest event that the client was sent */
    bool read_only;        /* asks, and commands nothing */
    bool progress;         /* wants progress lines while the command waits */
    bool told;             /* a progress line was sent for the command */
    bool ended;            /* end of input */
    uint64_t activity;     /* latest request or reply, counted over all clients */
    struct timer patience; /* to ask, or to take the reply; not set while the client must wait */
    int passed;            /* descriptor that goes with the reply, or -1 */
    char *out;             /* the reply in REPLYING and LAST_REPLY, else NULL */
    size_t out_n, out_sent;
    size_t in_n;
    char in[CONTROL_REQUEST_MAX];
};

/* Finds the pid (0: outside of our container) of a client of a socket with these rights; returns
 * the reason of a refusal, or NULL. */
const char *control_client_refusal(
    struct control *control, const struct control_rights *rights, int fd, pid_t *pid);
void control_client_destroy(struct control_client *client);
/* Whether as many clients wait as may when this client begins to: clients for reading leave half
 * of the places to others. */
bool control_is_waiting_full(const struct control_client *client);
/* Asserts the invariants between two calls. */
void control_client_check(const struct control_client *client);
/* Takes a legal step, and sets or disarms the timer. */
void control_client_set(struct control_client *client, enum client_phase phase);
/* Sends as much of the reply as the client takes, and enters the next phase at its end. */
enum client_step control_client_send(struct control_client *client);
/* Writes {"ok":...; the caller adds members before control_reply_end(). */
void control_reply_begin(struct json *json, bool ok);
/* Ends the reply and begins sending; `last`: and closes the connection behind the reply. */
void control_reply_end(struct json *json, struct control_client *client, bool last);
/* Replies with an error. */
void control_reply_error(struct control_client *client, const char *error, bool last);
/* Sends the reason of the wait; a client that does not read misses the line. */
void control_reply_waiting(struct control_client *client, const char *why);
/* Replies with the outcome of a command. */
void control_reply_outcome(struct control_client *client, const struct control_outcome *outcome);
