/* SPDX-License-Identifier: BSD-2-Clause */
/* Greetings, by which workers know of each other which protocols they run.
 *
 * A worker that starts greets all who have a slot then, and those of another master process, of
 * which the master tells; who is greeted greets back. So of any two
 * workers the later one begins, and a greeting goes ahead of every other message of its sender. A
 * protocol is named by a mark, the same in all configurations. What comes is input: who greets
 * without being there is told to be gone by the master, when it is greeted back. */
#include "shm/siphash.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <string.h>

uint64_t messages_mark(const char *protocol)
{
    static const uint64_t key[2] = { 0, 0 };

    return siphash(key, protocol, strlen(protocol));
}

/* Whether a protocol has a callback for what other workers send or are. */
static bool listens(const struct fb_worker *own)
{
    return own->started && (WORKER_HAS(own, message) || WORKER_HAS(own, answered) ||
                               WORKER_HAS(own, worker_came) || WORKER_HAS(own, worker_gone));
}

static uint64_t listening_bits(const struct worker *worker)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (listens(&worker->protocols[i]))
            bits |= UINT64_C(1) << i;
    return bits;
}

static unsigned list_marks(const struct worker *worker, uint64_t marks[STREAM_PROTOCOLS_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (listens(&worker->protocols[i]))
            marks[n++] = worker->protocols[i].mark;
    return n;
}

void messages_greet_peer(struct worker *worker, struct peer *peer)
{
    struct message_head head = {
        .from = references_own_worker(worker),
        .to = peer->id != 0 ? peer->id : (fb_ref)peer->incarnation << REFERENCES_NAME_BITS,
        .outcome = MESSAGE_IS_GREETING,
    };
    uint64_t marks[STREAM_PROTOCOLS_MAX];
    unsigned n = list_marks(worker, marks);
    struct queued_message *greeting;

    assert(!peer->greeted);
    greeting = message_create(worker, &head, marks, n * sizeof(marks[0]));
    peer->to_greet = greeting == NULL;
    peer->greeted = greeting != NULL;
    if (peer->greeted && peer->protocols == 0 && peer->id != 0)
        peer->unheard = listening_bits(worker);
    if (greeting != NULL)
        peers_send_greeting(worker, peer, greeting);
    else
        peers_retry_soon(worker);
}

static int greet_slot(struct worker *worker, struct slot_id id)
{
    struct peer *peer = peers_get(worker, slot_incarnation(id));

    if (peer == NULL) {
        log_write(&worker->log, LEVEL_EMERG, errno, "no memory for the other workers");
        return -1;
    }
    peer->id = references_of_slot(id);
    messages_greet_peer(worker, peer);
    return 0;
}

int messages_greet_all(struct worker *worker)
{
    const struct shared *shared = worker->heritage->shared;
    const struct shared_published *published = shared->published;
    uint64_t marks[STREAM_PROTOCOLS_MAX];
    uint32_t n = published->slot_n;

    if (worker->channel == NULL || list_marks(worker, marks) == 0)
        return 0;
    if (!messages_open(worker)) {
        log_write(&worker->log, LEVEL_EMERG, errno, "no memory for messages of workers");
        return -1;
    }
    for (uint32_t i = 0; i < n && i < SLOT_MAX; i++) {
        struct slot_id id = { .slot = shared->half * SLOT_MAX + i,
            .serial = published->slots[i].serial };

        if (id.serial != 0 && id.slot != worker->heritage->slot.slot &&
            greet_slot(worker, id) == -1)
            return -1;
    }
    channel_end_send(&worker->to_master, MESSAGE_OTHERS_WANTED);
    return 0;
}

void messages_greet_other(struct worker *worker, uint32_t incarnation)
{
    struct peer *peer;

    if (worker->phase >= WORKER_ENDING || incarnation == references_own(worker) ||
        !messages_open(worker))
        return;
    peer = peers_get(worker, incarnation);
    if (peer == NULL)
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory for another worker");
    else if (!peer->greeted)
        messages_greet_peer(worker, peer); /* the peer may be gone */
}

static void call_of_worker(struct fb_worker *own, enum callback callback,
    void (*function)(fb_worker *worker, void *state, fb_ref id), fb_ref id)
{
    struct worker *worker = own->worker;

    if (!own->started || function == NULL)
        return;
    heartbeat_begin(messages_net(worker)->heartbeat, callback, own->index);
    function(own, own->state, id);
    worker_check_fork(worker);
    heartbeat_end(messages_net(worker)->heartbeat);
}

/* Our protocols among those of a greeting, as bits of their indices. */
static uint64_t find_protocols(const struct worker *worker, fb_bytes marks)
{
    uint64_t found = 0, mark;

    for (size_t at = 0; at + sizeof(mark) <= marks.n; at += sizeof(mark)) {
        memcpy(&mark, marks.p + at, sizeof(mark));
        for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
            if (listens(&worker->protocols[i]) && worker->protocols[i].mark == mark)
                found |= UINT64_C(1) << i;
    }
    return found;
}

/* Whether our protocols have still to be told that this worker has gone. */
static bool is_going(struct messages *messages, uint32_t incarnation)
{
    const struct peer *peer;

    TAILQ_FOREACH (peer, &messages->gone, link)
        if (peer->incarnation == incarnation)
            return true;
    return false;
}

void messages_greeted(struct worker *worker, fb_ref from, fb_bytes marks)
{
    uint64_t protocols = find_protocols(worker, marks), came;
    struct peer *peer;

    if (protocols == 0 || worker->phase >= WORKER_ENDING ||
        is_going(worker->messages, references_incarnation(from)))
        return;
    peer = peers_get(worker, references_incarnation(from));
    if (peer == NULL) {
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory for another worker");
        return;
    }
    if (peer->id != 0 && peer->id != from) /* forged: a slot has one worker at a time */
        return;
    came = protocols & ~peer->protocols;
    peer->protocols |= protocols;
    peer->id = from;
    peer->unheard = 0;
    messages_heard_of(worker, from, protocols);
    if (!peer->greeted)
        messages_greet_peer(worker, peer); /* the peer may be gone */
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if ((came >> i & 1) != 0)
            call_of_worker(&worker->protocols[i], CALLBACK_WORKER_CAME,
                worker->protocols[i].protocol->worker_ops->worker_came, from);
}

void messages_tell_gone(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct peer *peer;

    while ((peer = TAILQ_FIRST(&messages->gone)) != NULL) {
        TAILQ_REMOVE(&messages->gone, peer, link);
        for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
            if ((peer->protocols >> i & 1) != 0)
                call_of_worker(&worker->protocols[i], CALLBACK_WORKER_GONE,
                    worker->protocols[i].protocol->worker_ops->worker_gone, peer->id);
        memory_release(messages_net(worker)->memory, peer);
        net_flush(messages_net(worker));
    }
}
