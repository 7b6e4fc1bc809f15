/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the control socket. Private to control/. Its phase says what is waited for; one
 * function changes it, and keeps the timer that cuts off slow clients. */
#pragma once

#include "base/check.h"
#include "base/json.h"
#include "control/control.h"

#include <bsd/sys/queue.h>

#define CONTROL_REQUEST_MAX 65536 /* bytes of a request */
#define CONTROL_PATIENCE_MS 30000 /* to ask, or to take the reply */
/* Clients at once. Those beyond the ones that may wait can give way: there are always some. */
#define CONTROL_CLIENTS_MAX 32
#define CONTROL_WAITING_MAX 16 /* clients that wait for the outcome of a command */
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
    enum control_wait waiting_for; /* CONTROL_WAIT_NONE but in WAITING, and for the exit */
    int fd;
    pid_t pid;
    bool progress;         /* told why, while the command waits */
    bool told;             /* ... and was, of this command */
    bool ended;            /* the client sends nothing more */
    uint64_t activity;     /* latest request or reply, counted over all clients */
    struct timer patience; /* to ask, or to take the reply; not set while the client must wait */
    char *out;             /* the reply in REPLYING and LAST_REPLY, else NULL */
    size_t out_n, out_sent;
    size_t in_n;
    char in[CONTROL_REQUEST_MAX];
};

void control_client_destroy(struct control_client *client);
/* Asserts what must hold between two calls. */
void control_client_check(const struct control_client *client);
/* Whether as many clients wait as may. */
bool control_waiting_is_full(const struct control *control);
/* Makes the client wait for this, and disarms its timer. */
void control_client_wait(struct control_client *client, enum control_wait waiting_for);
/* Sends as much of the reply as the client takes, and goes on to the next phase when it has all
 * of it. */
enum client_step control_client_send(struct control_client *client);

/* Writes {"ok":..., to which the caller adds members before control_reply_end(). */
void control_reply_begin(struct json *json, bool ok);
/* Ends the reply and begins to send it. */
void control_reply_end(struct json *json, struct control_client *client);
/* Replies that the request failed; `last`: and closes the connection behind the reply. */
void control_reply_error(struct control_client *client, const char *error, bool last);
/* Sends a line that says why the client still waits; a client that does not read goes without. */
void control_reply_waiting(struct control_client *client, const char *why);
/* Replies what came of a command. */
void control_reply_outcome(struct control_client *client, const struct control_outcome *outcome);
