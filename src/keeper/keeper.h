/* SPDX-License-Identifier: BSD-2-Clause */
/* A keeper: the process that shakes hands for one worker, where the keys of certificates are.
 *
 * Responsible for its life from the fork to the exit code, for the channel to the master, and for
 * the link to the worker. Never has a descriptor of a peer, or a path to open but beneath
 * directories of the configuration (keeper/named_file.h). What the worker says is input, and a
 * breach of the rules ends the link; the master says the truth. */
#pragma once

#include "channel/channel.h"
#include "event/loop.h"
#include "process/heritage.h"
#include "tls/handshakes.h"

enum keeper_phase {
    KEEPER_STARTING, /* loads the engine */
    KEEPER_SERVING,
    KEEPER_DRAINING, /* ends with the link */
    KEEPER_ENDING,   /* ends at once */
};

/* A file that the engine has asked for, without waiting. */
struct keeper_wanted {
    enum { WANTED_NONE, WANTED_UNSENT, WANTED_SENT, WANTED_CAME } phase;
    uint32_t index;
    int fd, error;
};

struct keeper {
    struct loop loop; /* the first member */
    const struct heritage *heritage;
    enum keeper_phase phase;
    struct log log;
    struct timer log_repair; /* until then no broken log is reported again */
    struct timer log_flush;  /* until then no waiting lines are sent */
    struct heartbeat *heartbeat;
    struct source *channel; /* NULL: the master has gone */
    struct channel_end to_master;
    struct channel_message report; /* the latest, sent or waiting for room in the channel */
    bool file_came;                /* since a request for a file that is waited for */
    struct channel_message file;
    struct keeper_wanted wanted;
    bool files_changed;     /* files of the configuration may have */
    struct timer daily;     /* when the files are looked at, whatever the master has told */
    struct tls_files files; /* the engine asks here for files */
    const struct tls_engine_ops *ops;
    struct tls_engine *engine;
    struct tls_handshakes *handshakes;
    struct source *link; /* to the worker; NULL: down */
    struct source_ops link_ops;
    /* the reply under way, of which a part did not fit into the socket; NULL: none */
    const struct tls_reply *reply;
    enum tls_step reply_step;
    uint32_t reply_number;
    size_t reply_from;
    bool resumes; /* handshakes that wait for a file go on */
    unsigned resume_from;
    uint8_t packet[TLS_PART_SIZE_MOST + 1];
};

/* Runs a keeper in this process, from the fork to the returned exit code. */
int keeper_main(const struct heritage *heritage, const struct tls_engine_ops *ops);
/* The parts: sets everything up; -1 after an emerg line, with nothing left to undo. */
int keeper_init(
    struct keeper *keeper, const struct heritage *heritage, const struct tls_engine_ops *ops);
/* Turns the loop once, waiting at most so many ms (-1: for ever). */
void keeper_turn(struct keeper *keeper, int timeout);
/* Whether the keeper is to end. */
bool keeper_has_ended(const struct keeper *keeper);
void keeper_done(struct keeper *keeper);
