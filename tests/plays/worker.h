/* SPDX-License-Identifier: BSD-2-Clause */
/* A scripted worker: acts like a worker towards the master, through channel, signals and shared
 * memory, and accepts clients of the listeners, and echoes. A case or a random play adds
 * misbehaviour. */
#pragma once

#include "plays/play.h"
#include "shm/heartbeat.h"

enum play_worker_phase {
    PLAY_WORKER_STARTS,
    PLAY_WORKER_READY,
    PLAY_WORKER_ACCEPTS,
    PLAY_WORKER_DRAINS, /* the listeners are released */
};

struct play_worker {
    struct play_process *process;
    struct shared *shared; /* the master's mapping; NULL: it has exited */
    pid_t tid;             /* the thread whose mapping it is */
    struct slot_id slot;
    unsigned index;
    uint32_t place;
    const struct cycle *cycle; /* the generation's: not to be read once the master may have ended */
    enum play_worker_phase phase;
    int channel;
    int link; /* to its keeper or its worker, or -1 */
    int file; /* the latest file that the master has opened, or -1 */
    int *listeners;
    unsigned listener_n;
    int *sessions;
    unsigned session_n;
    uint64_t ready_ms;        /* when it has started */
    int64_t shutdown_timeout; /* worker_shutdown_timeout of its configuration; 0: none */
    uint64_t shutdown_ms;     /* the close of all sessions; 0: no drain, or a drain without limit */
    bool disturbed;           /* killing it is no wrong */
    bool wronged;             /* killed by its master although undisturbed */
    /* Mistakes of the worker */
    bool never_ready;    /* the start does not end */
    bool never_accepts;  /* MESSAGE_ACCEPT is not answered */
    bool ignores_abort;  /* SIGABRT does not end it */
    bool deaf;           /* reads neither channel nor signals, except signals of an immediate end */
    bool stuck;          /* deaf, and the heartbeat stands in a callback */
    bool keeps_sessions; /* a drain does not end */
    bool fails_start;    /* exits with code 1 before it is ready */
    bool crashes_accepting; /* dies by SIGSEGV in its first accept */
    uint64_t start_ms;      /* how long it takes to start */
    /* received messages by kind, and the last argument of every kind */
    unsigned received[32];
    uint32_t arguments[32];
};

/* In the master's thread, by fork(): the worker of the heritage, with descriptors passed. */
struct play_worker *play_worker_create(
    struct play_process *process, const struct heritage *heritage);
/* In the test: takes the channel, and then the listeners. */
void play_worker_take(struct play_worker *worker, const int *fds, unsigned n);
void play_worker_close(struct play_worker *worker);
void play_worker_destroy(struct play_worker **worker);

/* A signal was sent to the worker. */
void play_worker_note_signal(struct play_worker *worker, int number, pid_t sender);
/* The master process of the current thread exits, and has unmapped its memory. */
void play_worker_forget_memory(const struct play *play, pid_t tid);

bool play_worker_is_runnable(struct play_worker *worker);
uint64_t play_worker_deadline(const struct play_worker *worker);
void play_worker_run(struct play_worker *worker);

/* End the process now: by an exit code, by an exit code after the last words, or by a signal. */
void play_worker_exit(struct play_worker *worker, int code);
void play_worker_end(struct play_worker *worker, enum heartbeat_end end, int code);
void play_worker_crash(struct play_worker *worker, int number);
/* Hang in a callback; lose the channel; and take all faults back. */
void play_worker_stick(struct play_worker *worker);
void play_worker_close_channel(struct play_worker *worker);
void play_worker_recover(struct play_worker *worker);
/* Sends the master a message. */
void play_worker_send(struct play_worker *worker, uint32_t kind, uint32_t argument);
/* Worker `index` of the last forked generation, if its process lives; NULL: none. */
struct play_worker *play_worker_find(const struct play *play, unsigned index);
