/* SPDX-License-Identifier: BSD-2-Clause */
/* The library that asks servers of names, on the worker's loop: its sockets are sources with
 * operations of the loop's mechanism, and its time-outs a timer. The library repeats questions,
 * changes servers, and opens connections for long answers.
 *
 * Each datagram of a question has its own socket and source port until the end of the question.
 * While all sockets are in use the oldest is closed for a new question, or for a repetition after
 * NAMES_CLIENT_TRY_MS. As long as more than half are in use, the pace of new questions keeps a
 * socket for 40 % of NAMES_CLIENT_PACE_MS at least. A question without a socket is repeated.
 *
 * A reply comes from the loop, or within names_client_ask(), and must not call the client.
 * client_none.c stands for a build without the library. */
#pragma once

#include "event/loop.h"
#include "names/message.h"
#include "net/address.h"

#include <forkbeard/names.h>

/* A question is repeated after this time, then after double the time ... */
#define NAMES_CLIENT_TRY_MS 1000
#define NAMES_CLIENT_TRIES 4
/* Milliseconds in which at most NAMES_SOCKETS new questions are asked. */
#define NAMES_CLIENT_PACE_MS 100
/* Questions at the library, cancelled resolutions' included. */
#define NAMES_CLIENT_ASKED 32768

struct names_client;

/* How a question has ended. */
struct names_reply {
    fb_name_outcome outcome; /* 0: taken back, and to be asked again */
    const char *why;         /* in words; NULL: see the bytes */
    const uint8_t *p;        /* FB_NAME_FOUND: the answer, which nobody has read yet */
    size_t n;
};

typedef void names_client_replied(void *arg, const struct names_reply *reply);
/* Whether this build has the library. */
bool names_client_built(void);
/* Makes a client of the servers "address:port,...", or (NULL) of the system's. Files and random
 * numbers are read now. `sockets`: at most, each a slot of the loop. NULL after an emerg line. */
struct names_client *names_client_create(
    struct loop *loop, const char *servers, unsigned sockets, names_client_replied *replied);
/* Ends all questions without a reply. */
void names_client_destroy(struct names_client **client);
/* Returns the milliseconds until a question can be asked. A question that was taken back, `again`,
 * may use another's socket, as a repetition may. */
uint64_t names_client_room_ms(struct names_client *client, bool again);
/* Asks for records of a type (MESSAGE_A ...). `name` is lent; the reply has `arg`. */
void names_client_ask(struct names_client *client, const char *name, uint16_t type, void *arg);
/* Takes all questions back if the library is full; every question has a reply now. */
void names_client_take_back(struct names_client *client);
/* To be called after a number of questions: sets the client's timer. */
void names_client_asked(struct names_client *client);
/* Looks into /etc/hosts for a name, or for the names of `address` (MESSAGE_PTR, else NULL); false:
 * unknown. *out has no records for a name of the other family. *readable: the file was read. */
bool names_client_hosts(struct names_client *client, const char *name, uint16_t type,
    const struct address *address, struct message *out, bool *readable);
