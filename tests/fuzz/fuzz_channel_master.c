/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's reading of its channels: a pool of four workers without processes, kept from input
 * to input, is sent arbitrary bytes and descriptors, while its workers come and go and read or do
 * not. An input is a list of steps: the action, the worker, and bytes; and in the end a forged
 * message. */
#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "pool/messages.h"
#include "pool/outbox.h"
#include "pool/pool.h"
#include "pool/worker.h"
#include "process/role.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORKERS 4
#define NO_PID 0x7ffffff0 /* beyond every pid, so a kill hits no process */

/* The pool, the workers' ends of the channels, and the time. */
struct scene {
    struct pool pool;
    struct generation *generation;
    struct cycle cycle;
    struct log_target targets[2];
    struct log log;
    struct clock clock;
    struct timers timers;
    struct adopted *adopted;
    struct zones zones;
    struct shared shared; /* without memory */
    int ends[WORKERS];
    uint32_t serial;
};

static void ignore_rescan(void *host)
{
    (void)host;
}

/* Another master process that answers nothing. */
static int ask_inbox(void *host, uint32_t incarnation, uint32_t asker)
{
    (void)host;
    if (incarnation == POOL_ASK_ALL)
        return 0;
    if (slot_half_of(incarnation) == 0 || asker >> INCARNATION_BITS != 0)
        abort();
    errno = incarnation % 2 == 0 ? EAGAIN : ENOTCONN;
    return -1;
}

static void ignore_gone(void *host, uint32_t incarnation)
{
    (void)host;
    (void)incarnation;
}

static const struct pool_ops pool_ops = {
    .rescan = ignore_rescan,
    .ask_inbox = ask_inbox,
    .worker_gone = ignore_gone,
};

/* Does what a fork does. */
static void fill_worker(struct scene *scene, unsigned i)
{
    struct pool_worker *worker = &scene->generation->workers[i];
    int ends[2];

    if (channel_open(ends) == -1)
        abort();
    channel_end_open(&worker->channel, ends[0], &pool_channel_ops, &scene->timers);
    scene->ends[i] = ends[1];
    worker->pid = NO_PID + (pid_t)i;
    worker->slot = (struct slot_id) { .slot = i, .serial = ++scene->serial };
    pool_worker_set_phase(worker, POOL_WORKER_STARTING);
}

/* Acts like an exit, and a fork afterwards. */
static void replace_worker(struct scene *scene, unsigned i)
{
    struct pool_worker *worker = &scene->generation->workers[i];

    if (scene->ends[i] != -1)
        close(scene->ends[i]);
    if (worker->known)
        pool_outbox_note_gone(worker);
    pool_worker_set_phase(worker, POOL_WORKER_EMPTY);
    fill_worker(scene, i);
}

static void respawn_passed(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

static void deadline_passed(struct loop *loop, struct timer *timer)
{
    struct pool_worker *worker = container_of(timer, struct pool_worker, deadline);

    (void)loop;
    if (worker->killed == POOL_KILL_NONE)
        worker->killed = worker->due;
    worker->due = POOL_KILL_NONE;
}

static struct scene *build(void)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct generation *generation =
        calloc(1, sizeof(*generation) + WORKERS * sizeof(generation->workers[0]));

    if (scene == NULL || generation == NULL)
        abort();
    role_set(ROLE_MASTER);
    signal(SIGIO, SIG_IGN);
    scene->clock.mono_ms = 1000;
    timers_init(&scene->timers, &scene->clock, NULL);
    scene->targets[0].fd = scene->targets[1].fd = STDERR_FILENO;
    scene->targets[0].path = scene->targets[1].path = "log";
    log_init(&scene->log, NULL, 0); /* lines are made, and written nowhere */
    scene->log.level = LEVEL_DEBUG;
    pool_init(&scene->pool, &(struct pool) {
                                .ops = &pool_ops,
                                .log = &scene->log,
                                .clock = &scene->clock,
                                .timers = &scene->timers,
                                .shared = &scene->shared,
                                .tickets = -1,
                            });
    scene->cycle.core.worker_processes = WORKERS;
    scene->cycle.core.worker_start_timeout = 1000;
    scene->cycle.core.worker_shutdown_timeout = 500;
    scene->cycle.core.logs = scene->targets;
    scene->cycle.core.log_n = 2;
    generation->pool = &scene->pool;
    generation->cycle = &scene->cycle;
    generation->number = ++scene->pool.generation_n;
    generation->phase = GENERATION_SERVING;
    generation->worker_n = generation->serve_n = WORKERS;
    scene->pool.serving = scene->generation = generation;
    TAILQ_INSERT_TAIL(&scene->pool.generations, generation, link);
    for (unsigned i = 0; i < WORKERS; i++) {
        generation->workers[i] = (struct pool_worker) {
            .generation = generation,
            .index = i,
            .channel = { .fd = -1 },
            .output = { .fd = -1 },
            .handle = -1,
            .inbox = -1,
            .broken_listener = -1,
            .respawn = { .expired = respawn_passed },
            .deadline = { .expired = deadline_passed },
        };
        log_quota_init(&generation->workers[i].lines, &scene->log, &scene->timers, "worker %u", i);
    }
    return scene;
}

/* Sends bytes, perhaps with descriptors; false: the channel is full, or closed. */
static bool send_bytes(int end, const uint8_t *p, size_t n, unsigned passed)
{
    char room[CMSG_SPACE(16 * sizeof(int))] = "";
    struct iovec piece = { (void *)p, n };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
    struct cmsghdr *control = (struct cmsghdr *)(void *)room;

    if (passed > 0) {
        int fds[16];

        for (unsigned i = 0; i < 16; i++)
            fds[i] = STDERR_FILENO;
        header.msg_control = room;
        header.msg_controllen = CMSG_SPACE(passed * sizeof(int));
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(passed * sizeof(int));
        memcpy(CMSG_DATA(control), fds, passed * sizeof(int));
    }
    return sendmsg(end, &header, MSG_NOSIGNAL | MSG_DONTWAIT) != -1;
}

/* A message of a known kind, mostly with a fitting argument. */
static bool send_message(struct scene *scene, int end, const uint8_t *p)
{
    static const uint32_t kinds[] = { MESSAGE_READY, MESSAGE_ACCEPTING, MESSAGE_RELEASED,
        MESSAGE_RESCAN, MESSAGE_LOG_BROKEN, MESSAGE_INBOX_LOST, MESSAGE_INBOX_WANTED,
        MESSAGE_INBOX_WANTED, MESSAGE_MUTEX_DAMAGED, MESSAGE_LISTENER_BROKEN,
        MESSAGE_OTHERS_WANTED };
    uint32_t words[2] = { kinds[p[0] % countof(kinds)], 0 };

    if (words[0] == MESSAGE_LOG_BROKEN)
        words[1] = p[1] % 3;
    else if (words[0] == MESSAGE_LISTENER_BROKEN)
        words[1] = p[1] < 250 ? p[1] % 8 : (uint32_t)p[1] << 24;
    else if (words[0] == MESSAGE_INBOX_WANTED)
        words[1] = slot_incarnation(scene->generation->workers[p[1] % WORKERS].slot) ^ p[2] / 64 ^
                   (p[2] % 4 == 0 ? SLOT_MAX : 0);
    return send_bytes(end, (const uint8_t *)words, sizeof(words), 0);
}

/* Sends a message with a wrong kind, argument or length, or all wrong. */
static void forge_message(struct scene *scene, const uint8_t *p)
{
    unsigned i = p[0] % WORKERS;
    uint32_t words[3] = { p[0] / WORKERS % 20,
        p[1] % 2 == 0 ? p[2] % 16 : (uint32_t)p[2] << 24 | p[1] };
    size_t n = p[1] < 0xe0 ? 2 * sizeof(words[0]) : p[1] % (sizeof(words) + 1);

    if (send_bytes(scene->ends[i], (const uint8_t *)words, n, p[2] % 64 == 63))
        return;
    replace_worker(scene, i); /* the channel was shut down, or full */
    send_bytes(scene->ends[i], (const uint8_t *)words, n, 0);
}

static void read_some(int end, unsigned n)
{
    struct channel_message message;

    while (n-- > 0 && channel_receive(end, &message) == CHANNEL_DONE)
        if (message.fd != -1)
            close(message.fd);
}

static void let_time_pass(struct scene *scene, uint64_t ms)
{
    scene->clock.mono_ms += ms;
    timers_run(&scene->timers);
}

/* The second master process sends a message, with any content. */
static void let_other_speak(struct scene *scene, const uint8_t *p)
{
    uint32_t incarnation =
        (p[0] % 8 == 7 ? 0xf0000000u : 0) | (p[0] % 4 == 3 ? 0 : SLOT_MAX) | p[1];
    uint32_t asker = slot_incarnation(scene->generation->workers[p[2] % WORKERS].slot);
    uint32_t others[] = { incarnation, p[1] | SLOT_MAX, p[2] | SLOT_MAX };

    switch (p[0] / 8 % 4) {
    case 0:
        pool_others_came(&scene->pool, others, p[2] % 4);
        break;
    case 1:
        pool_others_inbox_came(&scene->pool, incarnation, asker ^ (p[2] / 128), p[2] % 8 < 4,
            p[2] % 2 == 0 ? STDERR_FILENO : -1);
        break;
    case 2:
        pool_others_note_gone(&scene->pool, incarnation);
        break;
    default:
        if (p[2] % 8 == 0)
            pool_others_end(&scene->pool);
        break;
    }
}

/* Takes a step; returns the number of bytes taken. */
static size_t take_step(struct scene *scene, const uint8_t *p, size_t n)
{
    static const uint8_t zeros[12];
    unsigned i = p[0] / 16 % WORKERS, length = p[1] % 24;
    int end = scene->ends[i];

    switch (p[0] % 16) {
    case 0: /* any bytes */
        length = length < n - 2 ? length : (unsigned)n - 2;
        send_bytes(end, p + 2, length, 0);
        return length + 2;
    case 1:
        send_bytes(end, zeros, p[1] % 12, p[1] / 12 % 16);
        break;
    case 2:
        read_some(end, 4 * p[1]);
        break;
    case 3:
        let_time_pass(scene, p[1]);
        break;
    case 4:
        replace_worker(scene, i);
        break;
    case 5:
        shutdown(end, p[1] % 3);
        break;
    case 6:
        pool_outbox_logs(&scene->generation->workers[i]);
        break;
    case 7: /* many, or one */
        for (unsigned more = p[1] < 250 ? 1 : 8u * p[1]; more > 0; more--)
            if (!send_message(scene, end, p + 1))
                break;
        break;
    case 8:
        pool_receive_messages(&scene->pool);
        break;
    case 9:
        pool_worker_end(&scene->generation->workers[i], p[1] % 2 == 0);
        break;
    case 10: /* for a replacement, perhaps told to drain before ready */
        scene->cycle.core.worker_start_timeout = p[1] % 2 == 0 ? 1000 : 2000;
        replace_worker(scene, i);
        scene->cycle.core.worker_start_timeout = 1000;
        break;
    case 11:
        let_other_speak(scene, p + 1);
        break;
    default:
        send_message(scene, end, p + 1);
        break;
    }
    return 2;
}

static void wake_up(struct scene *scene)
{
    struct pool_worker *worker;

    pool_receive_messages(&scene->pool);
    let_time_pass(scene, 1);
    GENERATION_FOREACH_WORKER (worker, scene->generation)
        if (worker->killed != POOL_KILL_NONE)
            replace_worker(scene, worker->index);
    scene->log.broken = false;
    if (scene->generation->without_mutex && scene->clock.mono_ms % 16 == 0) { /* a next one */
        scene->generation->without_mutex = false;
        scene->generation->mutex_damage = 0;
    }
    pool_check(&scene->pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scene *scene;
    const uint8_t *first = data;
    bool forged = size >= 4;

    if (scene == NULL) {
        scene = build();
        for (unsigned i = 0; i < WORKERS; i++)
            fill_worker(scene, i);
    }
    while (size >= 4) {
        size_t n = take_step(scene, data, size);

        wake_up(scene);
        data += n;
        size -= n;
    }
    if (forged) {
        forge_message(scene, first);
        wake_up(scene);
    }
    return 0;
}
