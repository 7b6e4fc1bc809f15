/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_starttls: what client and server say in plain before the client's TLS, read line by line.
 *
 * Responsible for each protocol's commands and lists of capabilities (starttls_*.c). A reader has
 * no connection: state and a line are given, bytes for the client come out, and a verdict.
 * Invariant: at most one command awaits the server's reply. */
#pragma once

#include <forkbeard/forkbeard.h>

#include <stdbool.h>

/* The longest line of a client; of a server; and of a server's line that may have to change. */
#define STARTTLS_COMMAND_MOST 1024
#define STARTTLS_REPLY_MOST 8192
#define STARTTLS_KEPT_MOST 512
#define STARTTLS_TAG_MOST 32

/* Takes bytes for the client. */
struct starttls_out {
    void (*add)(struct starttls_out *out, const void *p, size_t n);
};

enum starttls_act {
    STARTTLS_FORWARDS, /* the line goes to the server, and its reply is awaited */
    STARTTLS_ANSWERS,  /* our reply has been added */
    STARTTLS_BEGINS,   /* TLS begins behind our reply */
    STARTTLS_PASSES,   /* the line, and all from now on, is between client and server */
};

/* The awaited reply of the server, and the progress within. */
enum starttls_reply {
    STARTTLS_GREETING,
    STARTTLS_CAPABILITIES,      /* may have to change */
    STARTTLS_MORE_CAPABILITIES, /* past the first line */
    STARTTLS_OTHER,
};

struct starttls_state {
    bool secured;  /* the client has TLS */
    bool optional; /* a client may go on without TLS */
    enum starttls_reply reply;
    uint8_t tag_n;
    char tag[STARTTLS_TAG_MOST]; /* IMAP: of the command */
    uint16_t kept_n;
    char kept[STARTTLS_KEPT_MOST]; /* SMTP: the line before, which may be the last */
};

struct starttls_dialect {
    const char *name;
    /* Reads a command of the client, without the end of its line. */
    enum starttls_act (*command)(
        struct starttls_state *state, fb_bytes line, struct starttls_out *out);
    /* Adds the server's line as the client is to see it; returns 1 when the reply is whole, 0, or
     * -1: no server says so. */
    int (*reply)(struct starttls_state *state, fb_bytes line, struct starttls_out *out);
    bool speaks_first; /* the client's first bytes are a request of PostgreSQL, and no line */
};

extern const struct starttls_dialect starttls_smtp, starttls_imap, starttls_pop3, starttls_postgres;

/* Reads the first bytes of a client of PostgreSQL: *used of them are consumed. Returns
 * STARTTLS_FORWARDS: more are needed; STARTTLS_ANSWERS: a refusal, and the session ends unless
 * *used is not 0. */
enum starttls_act starttls_read_postgres(
    const struct starttls_state *state, fb_bytes in, size_t *used, struct starttls_out *out);

/* ---- For the readers ---- */

void starttls_add_text(struct starttls_out *out, const char *text);
/* Adds a line, and its end. */
void starttls_add_line(struct starttls_out *out, fb_bytes line);
/* Whether the line begins with the word, in letters of either case, and what follows is no part of
 * it. */
bool starttls_is_word(fb_bytes line, const char *word);
/* Whether a command has a byte that could end a line elsewhere. */
bool starttls_has_control(fb_bytes line);
