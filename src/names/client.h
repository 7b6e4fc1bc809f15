/* SPDX-License-Identifier: BSD-2-Clause */
/* The library that asks servers of names, on the worker's loop: its sockets are sources with
 * operations of the loop's mechanism, and its time-outs a timer. Repeating questions, changing
 * servers, and connections for long answers are the library's.
 *
 * A reply comes from the loop, or within names_client_ask(); the client must not be called from
 * within it. client_none.c stands for a build without the library. */
#pragma once

#include "event/loop.h"
#include "names/message.h"

#include <forkbeard/names.h>

/* Sockets that a client may have at once, and so the slots of the loop that it needs. */
#define NAMES_CLIENT_SOCKETS 40

struct names_client;

/* How a question has ended. */
struct names_reply {
    fb_name_outcome outcome;
    const char *why;  /* in words; NULL: see the bytes */
    const uint8_t *p; /* FB_NAME_FOUND: the answer, which nobody has read yet */
    size_t n;
};

typedef void names_client_replied(void *arg, const struct names_reply *reply);

/* Whether this build has the library. */
bool names_client_built(void);
/* Makes a client of these servers, "address:port,...", or (NULL) of the system's, whose files are
 * read now. Random numbers for questions are taken now, too. NULL after an emerg line. */
struct names_client *names_client_create(
    struct loop *loop, const char *servers, names_client_replied *replied);
/* Ends all questions without a reply. */
void names_client_destroy(struct names_client **client);

/* Asks for records of a type (MESSAGE_A ...). `name` is lent; the reply has `arg`. */
void names_client_ask(struct names_client *client, const char *name, uint16_t type, void *arg);
/* To be called after a number of questions: sets the client's timer. */
void names_client_asked(struct names_client *client);
/* Looks into /etc/hosts; false: it does not have the name. *out is without records where it has the
 * name for another family alone. The name of MESSAGE_PTR is that of `address`, unless that is NULL.
 * *readable: the file could be read. */
bool names_client_hosts(struct names_client *client, const char *name, uint16_t type,
    const struct sockaddr *address, struct message *out, bool *readable);
