/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker keeps of its mail. */
#pragma once

#include "stream/session_conn.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

/* Goes from worker to worker, who are of one build, in front of the message. */
struct letter_head {
    uint64_t number; /* the sender's */
    fb_ref from, to;
    uint64_t outcome; /* of an answer, an fb_outcome; 0: a message */
};

struct letter {
    STAILQ_ENTRY(letter) link;
    size_t n;
    struct letter_head head;
    uint8_t bytes[];
};

STAILQ_HEAD(letters, letter);

/* A message that was not answered. */
struct pending {
    RB_ENTRY(pending) node;
    uint64_t number;
    fb_ref from;
    uint32_t life;      /* of the receiver's worker */
    fb_outcome outcome; /* known to us, but not told; 0: unknown */
};

RB_HEAD(pendings, pending);

/* Another worker. */
struct peer {
    LIST_ENTRY(peer) link;
    uint32_t life;
    int fd; /* to its inbox; -1: the master is asked for it */
    struct letters letters;
    unsigned letter_n;
};

struct fb_mail {
    struct fb_source *inbox;   /* NULL where there are no other workers */
    struct fb_source *carrier; /* of no descriptor: runs for `own` and what we answer ourselves */
    struct letters own;        /* letters to ourselves */
    LIST_HEAD(, peer) peers;
    struct pendings pending;
    unsigned known_n; /* of these, those whose outcome we know */
    uint64_t last_number;
    struct fb_timer retry;
};
