/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of the mechanism io_uring. Calls go downwards only: io_uring.c (wishes, and the wait),
 * ring_io.c (the I/O operations of sources), ring_ops.c (operations of the kernel, and results),
 * ring_buffers.c (memory), ring.c (the kernel's ring, and the table of watches).
 *
 * A watch stands between a source and its operations with the kernel, which name the watch: a
 * source's slot can be reused at once, a watch only after the kernel's last operation. A turn gives
 * the kernel all changes since the last turn, by the call that also waits. */
#pragma once

#include "base/check.h"
#include "event/loop.h"

#include <liburing.h>

#define RING_KIND KIND('r', 'i', 'n', 'g')

/* Bytes of a buffer to receive into, and of one to send from. */
#define RING_BUFFER_SIZE ((size_t)16 * 1024)
#define RING_GROUP 0 /* number of the buffers' group */

/* An operation of a watch; the kernel has at most one of a kind. */
enum ring_op {
    RING_READ,  /* receives, or waits for input */
    RING_WRITE, /* waits for room */
    RING_SEND,
    RING_OPS,
    RING_CANCEL = RING_OPS, /* no watch's: returned only where there was nothing to cancel */
};

/* Input that was received and not taken. */
struct ring_input {
    uint8_t *p; /* NULL: none */
    uint32_t at, end;
    int buffer;     /* number in the ring; -1: private memory */
    bool eof;       /* the peer's end comes behind it */
    int error;      /* an errno comes behind it; 0: none */
    bool more;      /* the kernel has more input */
    bool exhausted; /* no buffer was free for it */
};

/* Output accepted and not sent yet. */
struct ring_output {
    uint8_t *p; /* NULL: none */
    uint32_t at, end;
    int buffer;     /* number in the ring, lent to a reader; -1: private memory */
    int error;      /* an errno of an earlier send; 0: none */
    bool waits;     /* for room: an earlier send had too little */
    bool silent;    /* the kernel reports only a send without success at once */
    unsigned entry; /* a silent send has this number */
};

struct ring_watch {
    TAILQ_ENTRY(ring_watch) changed_link, unread_link;
    TAILQ_ENTRY(ring_watch) silent_link; /* `plain` ones too: these send nothing */
    struct source *source;               /* NULL: gone, with an operation left in the kernel */
    uint32_t next_free;
    bool in_use;
    bool wanted[EVENT_DIRECTIONS];
    bool busy[RING_OPS];      /* with the kernel */
    bool cancelled[RING_OPS]; /* asked back from it */
    bool polled;              /* the kernel's read operation only waits for input */
    bool plain;               /* descriptor without the ring's operations, only waited for */
    bool listening;
    bool connecting; /* to receive now would take away the error of connect() */
    bool splices;    /* input is waited for, and not received */
    bool changed;    /* in the ring's list of watches that the kernel has to hear of */
    bool unread;     /* in the ring's list of watches with reports due */
    struct ring_input in;
    struct ring_output out;
};

TAILQ_HEAD(ring_watches, ring_watch);

/* Memory of RING_BUFFER_SIZE for output. */
struct ring_spare {
    struct ring_spare *next;
};

struct ring {
    unsigned kind;
    struct loop *loop;
    struct io_uring io;
    unsigned busy_n; /* operations with the kernel, without cancellations */

    struct ring_watch *watches; /* a table, touched lazily */
    uint32_t watches_max, used_n, in_use_n, free;
    struct ring_watches changed, unread;
    struct ring_watches silent; /* watches with a send that gives no result on success */
    struct ring_watches plain;
    uint64_t renew_at_ms; /* when plain waits are renewed; 0: no handler has run since */

    /* Receive buffers. The kernel takes from `provided`; `uses` counts users of a filled buffer. */
    struct io_uring_buf_ring *provided;
    size_t provided_size;
    unsigned buffer_n, provided_mask;
    uint8_t *buffers;
    uint16_t *uses;
    unsigned held_n; /* filled buffers not given back to the kernel */
    unsigned sent_n; /* sends from buffers */
    uint16_t *lent;  /* buffers lent to readers until the next wait */
    unsigned lent_n;
    struct ring_spare *spare;
    unsigned spare_n;
};

extern const struct io_ops ring_io; /* of ring_io.c */

/* Whether the ring moves no bytes of the source, and only waits. */
static inline bool ring_is_plain(const struct source *source)
{
    return source->io != &ring_io && !source->layered;
}

/* Sets up a ring restricted to the operations in use, with `n` buffers; -1 with errno. */
int ring_open(struct ring *ring, unsigned entries, unsigned n);
void ring_close(struct ring *ring);
/* Whether the kernel allows rings; false with errno. */
bool ring_is_possible(void);
/* Returns an entry to fill in; NULL: no room until the kernel has taken entries. */
struct io_uring_sqe *ring_entry(struct ring *ring);
/* Submits the filled-in entries, and waits; a negative errno, or the number of entries taken. */
int ring_enter(struct ring *ring, int timeout, const sigset_t *mask);
/* Returns the watch of a source, which is made where there is none; NULL with errno. */
struct ring_watch *ring_watch_get(struct ring *ring, struct source *source);
/* Gives a watch back after the kernel's last operation. */
void ring_watch_put(struct ring *ring, struct ring_watch *watch);
void ring_check(const struct ring *ring);
/* Makes n buffers and gives all to the kernel; -1 with errno. */
int ring_buffers_init(struct ring *ring, unsigned n);
void ring_buffers_done(struct ring *ring);
/* Notes a buffer filled by the kernel, and returns the memory. */
uint8_t *ring_buffer_taken(struct ring *ring, int buffer);
/* Drops a use of a buffer; the kernel gets an unused buffer back. */
void ring_buffer_release(struct ring *ring, int buffer);
/* Takes back the buffers lent since the last wait. */
void ring_buffers_take_back(struct ring *ring);
/* Drops a watch's input, and its output. */
void ring_input_drop(struct ring *ring, struct ring_watch *watch);
void ring_output_drop(struct ring *ring, struct ring_watch *watch);
/* Takes input, at most as much as *span has room for: lent in its buffer, or copied. */
size_t ring_input_take(struct ring *ring, struct ring_watch *watch, struct io_span *span);
/* Copies unread input out of the buffer, where memory allows. */
void ring_input_keep(struct ring *ring, struct ring_watch *watch);
/* Adds to output not begun; returns how many bytes: 0 with errno (ENOMEM), or without room. */
size_t ring_output_add(
    struct ring *ring, struct ring_watch *watch, const struct iovec *pieces, int n);

static inline struct ring *ring_of(const struct source *source)
{
    struct ring *ring = source->io_state;

    CHECK_KIND(ring, RING_KIND);
    return ring;
}

static inline struct ring *ring_of_loop(const struct loop *loop)
{
    struct ring *ring = loop->mechanism_state;

    CHECK_KIND(ring, RING_KIND);
    return ring;
}

static inline struct ring_watch *ring_watch_of(struct ring *ring, const struct source *source)
{
    return source->position == 0 ? NULL : &ring->watches[source->position - 1];
}

static inline bool ring_is_busy(const struct ring_watch *watch)
{
    return watch->busy[RING_READ] || watch->busy[RING_WRITE] || watch->busy[RING_SEND];
}

/* Makes the next wait look at the watch. */
static inline void ring_note_change(struct ring *ring, struct ring_watch *watch)
{
    if (watch->changed)
        return;
    watch->changed = true;
    TAILQ_INSERT_TAIL(&ring->changed, watch, changed_link);
}
