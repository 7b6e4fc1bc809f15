/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract of an event mechanism: a file in mechanisms/, a row in mechanisms.def and a line in
 * src/Makefile.inc. tests/contract runs each through every case.
 *
 *  - State is a loop's: loop->mechanism_state, of state_size zeroed bytes, and loop->mechanism_fd.
 *    The loop makes both before init(), and frees both after done(), which follows a failed init().
 *  - event/source.c keeps the flags of events: when an operation runs, `active` still has the
 *    directions watched before. Operations return 0, or -1 with errno and nothing changed.
 *  - Events are reported by loop_report(), which runs no handler of a connection, so that no source
 *    held by process_events can vanish meanwhile.
 *  - Events of a source with `level`, and of a listener, are levels under every mechanism. Such a
 *    source is added and deleted, and never paused.
 *  - A source with neither direction enabled reports nothing, not even a hang-up, unless the kernel
 *    reports once. An error of a paused source goes to loop_report_broken(), if told.
 *  - A descriptor closed by foreign code is logged and reported at most once, until it is armed
 *    anew: an inactive owner does not make the loop spin. */
#pragma once

#include "event/source.h"

struct clock;
struct loop;

/* A directive of the mechanism's own in `events {}`: a number. */
struct mechanism_option {
    const char *name; /* NULL: none */
    int64_t least, greatest, initial;
};

#define MECHANISM_OPTIONS 2

/* The values of a mechanism's directives, in the order of the options. */
struct mechanism_values {
    int64_t of[MECHANISM_OPTIONS];
};

struct mechanism {
    const char *name;   /* in the directive `use`: nginx's name, if any */
    bool edge;          /* events are reported once a change: go on until "again" */
    bool exclusive;     /* can wake a single waiting process for a listener */
    bool forgets;       /* silently stops watching a closed descriptor */
    bool ends_by_close; /* del_conn is not called for a closed descriptor: nothing to do */
    bool masks; /* the wait takes a signal mask, and while events are ready looks at no signal */
    bool by_use_alone;        /* chosen by the directive `use` alone, even if available */
    bool unfiltered;          /* system calls pass by the filter of system calls */
    bool tells_broken;        /* calls loop_report_broken() for paused sources too */
    bool tells_refused;       /* sets `eof` also with the report of a failed connect() */
    bool yields;              /* when refused by the kernel, gives way to the best alternative */
    uint32_t descriptors_max; /* no descriptor from here on can be watched; 0: no limit */
    struct mechanism_option options[MECHANISM_OPTIONS]; /* named ones first */
    const struct io_ops *io; /* the operations that its sources start with */
    void *self; /* NULL, or the state of a mechanism made at run time, as in simulations */
    size_t state_size;

    /* Opens a descriptor of the kernel's, close-on-exec from then on; NULL: there is none. */
    int (*open)(void);
    /* Whether this kernel has the mechanism, asked in the master too; NULL: where open()
     * succeeds. */
    bool (*available)(void);
    /* Fills in the state for loop->sources.n slots, after the fork(). `options` are the directives'
     * values. Both may be NULL. */
    int (*init)(struct loop *loop, const int64_t *options);
    void (*done)(struct loop *loop);

    /* Start and end watching one direction. */
    int (*add)(struct loop *loop, struct source *source, enum event_direction direction);
    int (*del)(struct loop *loop, struct source *source, enum event_direction direction);
    /* Go on and pause watching an added direction, without a system call where possible. NULL: the
     * loop remembers an edge of a paused direction. */
    int (*enable)(struct loop *loop, struct source *source, enum event_direction direction);
    int (*disable)(struct loop *loop, struct source *source, enum event_direction direction);
    /* Start and end watching both directions; del_conn also a single one. `closing`: the close
     * follows, so that the kernel needs not be asked. add_conn may be NULL. */
    int (*add_conn)(struct loop *loop, struct source *source);
    int (*del_conn)(struct loop *loop, struct source *source, bool closing);
    /* A listener is level-triggered, and deleted before its close, as the master holds the socket
     * on. NULL: as any source that is read. */
    int (*add_listener)(struct loop *loop, struct source *source, bool exclusive);
    int (*del_listener)(struct loop *loop, struct source *source);
    /* Makes the kernel drop files of sources not watched any more; may report. NULL: it holds
     * none. */
    void (*release)(struct loop *loop);

    /* Make notify() work, and ticks every `ms`, where the kernel has events without a descriptor:
     * the wait gives loop->notifier or loop->ticker to loop_report_own(). -1 with errno. */
    int (*start_notices)(struct loop *loop);
    int (*start_ticks)(struct loop *loop, uint64_t ms);
    /* Wakes the loop and has its notified() run; may be called from any thread. */
    int (*notify)(struct loop *loop);
    /* Waits at most `timeout` ms (-1: for ever) with the signal mask loop->wait_mask, and reports;
     * without `masks` between loop_let_signals() and loop_hold_signals(). A signal ends the wait
     * without a word, any other failure is loop_fail()'s. */
    void (*process_events)(struct loop *loop, int timeout);
    /* Sets loop->clock; NULL: the loop reads the system's clocks. */
    void (*read_clock)(struct clock *clock);
};

#define MECHANISM(name) extern const struct mechanism mechanism_##name;
#include "event/mechanisms.def"
#undef MECHANISM

#define MECHANISMS_MAX 16

/* The built-in mechanisms, best first; ends with NULL. */
extern const struct mechanism *const mechanism_table[];

/* Finds a mechanism by name, or for NULL the best available without by_use_alone; or NULL. */
const struct mechanism *mechanism_find(const char *name);
/* Whether this kernel has the mechanism; false with errno. */
bool mechanism_available(const struct mechanism *mechanism);
struct mechanism_values mechanism_defaults(const struct mechanism *mechanism);
void mechanism_check(const struct mechanism *mechanism);
