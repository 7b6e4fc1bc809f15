/* SPDX-License-Identifier: BSD-2-Clause */
/* Links of workers and keepers. A link is made when the second of a pair is forked, also in place
 * of a dead process; the ends are passed over the channels, so that no other process inherits an
 * end, and the master keeps none. Never reads a file that was opened for a keeper. */
#include "pool/keepers.h"

#include "base/compiler.h"
#include "channel/channel.h"
#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "os/sockets.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "process/signals.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

/* Room in each direction for some replies of the longest packets. */
#define LINK_BUFFER (256 * 1024)

/* Returns the keeper of a worker, or the worker of a keeper; NULL: none. */
static struct pool_worker *partner_of(const struct pool_worker *worker)
{
    struct generation *generation = worker->generation;

    if (worker->task == TASK_KEEP)
        return &generation->workers[worker->index - generation->serve_n];
    if (worker->task != TASK_SERVE || generation->keeper_n == 0)
        return NULL;
    return &generation->workers[generation->serve_n + worker->index];
}

/* Gives a process its end, in place of one that has not been sent. */
static void give_link(struct pool_worker *worker, int end)
{
    os_rights_refuse(end);
    fd_widen(end, LINK_BUFFER);
    descriptor_close(worker->outbox.link);
    worker->outbox.link = end;
    worker->link_n++;
    channel_end_send_more(&worker->channel);
}

void pool_keepers_link(struct pool_worker *worker)
{
    struct pool_worker *partner = partner_of(worker);
    int ends[2];

    assert(role_is(ROLE_MASTER));
    assert(worker->pid > 0);
    if (partner == NULL || partner->pid == 0)
        return;
    assert(partner_of(partner) == worker);
    if (descriptor_socketpair(AF_UNIX, SOCK_SEQPACKET, O_NONBLOCK, ends) == -1) {
        struct pool_worker *keeper = worker->task == TASK_KEEP ? worker : partner;

        log_quota_write(&keeper->lines, LEVEL_ALERT, errno,
            "keeper process %d cannot be connected to its worker process, and is killed",
            (int)keeper->pid);
        signals_send_held(keeper->pid, keeper->handle, SIGKILL, worker->generation->pool->log);
        return;
    }
    give_link(worker, ends[0]);
    give_link(partner, ends[1]);
}

bool pool_keepers_want_file(struct pool_worker *worker, uint32_t file)
{
    assert(worker->task == TASK_KEEP && file < worker->generation->cycle->tls.file_n);
    if (worker->outbox.file_wanted)
        return false;
    channel_end_forgive(&worker->channel);
    worker->outbox.file = file;
    worker->outbox.file_wanted = true;
    channel_end_send_more(&worker->channel);
    return true;
}

static void tell_keepers(struct tls_file_watch *watch)
{
    struct generation *generation = container_of(watch, struct generation, files);
    struct pool_worker *worker;

    if (generation->phase >= GENERATION_REPLACED)
        return;
    event_log_note(generation->pool->log->event_log, "certificates_changed",
        "keeper processes of generation %u read the changed files", generation->number);
    GENERATION_FOREACH_WORKER (worker, generation)
        if (worker->task == TASK_KEEP && worker->pid > 0)
            channel_end_send(&worker->channel, MESSAGE_FILES_CHANGED);
}

void pool_keepers_watch(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct tls_file_watch *watch = &generation->files;

    if (generation->keeper_n == 0)
        return;
    tls_file_watch_open(watch, &generation->cycle->tls, pool->timers, tell_keepers);
    if (watch->fd != -1 && process_ops->wakeup_add(watch->fd) == -1)
        log_write(pool->log, LEVEL_ALERT, errno, "changes of certificates may be seen late");
}

void pool_keepers_look(struct pool *pool)
{
    struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link)
        if (generation->files.profiles != NULL)
            tls_file_watch_take(&generation->files);
}

void pool_keepers_unwatch(struct generation *generation)
{
    if (generation->files.profiles != NULL && generation->files.fd != -1)
        process_ops->wakeup_remove(generation->files.fd);
    tls_file_watch_close(&generation->files);
}
