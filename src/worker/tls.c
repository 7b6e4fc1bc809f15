/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes the link to an engine. A worker of a master maps no key and no engine: a keeper
 * does. The master is told of a lost link, and makes a new link if the keeper lives; the number in
 * the message keeps a link that is under way from being replaced again. */
#include "worker/tls.h"

#include "tls/files.h"
#include "tls/layer.h"
#include "tls/link_keeper.h"
#include "tls/link_local.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>

#define DAY_MS 86400000

static void refresh_own_engine(struct tls_file_watch *watch)
{
    struct worker *worker = container_of(watch, struct worker, tls.watch);

    worker->cycle->engine->refresh(worker->tls.engine, &worker->log);
}

static void run_changes(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);

    assert(source == worker->tls.changes);
    tls_file_watch_take(&worker->tls.watch);
}

static void own_day_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);

    worker->cycle->engine->remind(worker->tls.engine, &worker->log);
    timer_set(loop, timer, DAY_MS);
}

/* Watches the engine's files; without a source they are looked at now and then. */
static void watch_own_files(struct worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_changes } };
    struct loop *loop = &worker->stream.net.loop;
    struct worker_tls *tls = &worker->tls;

    tls_file_watch_open(&tls->watch, &worker->cycle->tls, &loop->timers, refresh_own_engine);
    tls->daily.expired = own_day_expired;
    timer_set(loop, &tls->daily, DAY_MS);
    if (tls->watch.fd != -1)
        tls->changes = worker_source(worker, tls->watch.fd, &ops);
    if (tls->changes == NULL)
        return;
    tls->changes->level = true;
    if (source_watch_level(loop, tls->changes, true, false) == 0)
        return;
    source_detach(loop, tls->changes);
    tls->changes = NULL;
}

/* Makes the engine of a process without a master, or simulated, and the link to it. */
static int open_own_engine(struct worker *worker)
{
    const struct tls_engine_ops *ops = worker->cycle->engine;
    struct worker_tls *tls = &worker->tls;

    tls->files = tls_files_own(&worker->cycle->tls);
    if (worker->heritage->simulated) /* the names are enough */
        tls->files.open = NULL;
    tls->engine = ops->create(&tls->files, &worker->log);
    if (tls->engine == NULL)
        return -1;
    if (!worker->heritage->simulated)
        watch_own_files(worker);
    worker->stream.tls_link = tls_link_create_local(&worker->stream.net.loop, ops, tls->engine);
    return 0;
}

static void note_lost_link(struct loop *loop)
{
    struct worker *worker = worker_of_loop(loop);

    worker->tls.lost = worker->tls.link_n;
    channel_end_send_more(&worker->to_master);
}

bool worker_tls_send_lost(struct worker *worker)
{
    const struct channel_message lost = { MESSAGE_LINK_LOST, worker->tls.lost, -1 };

    if (worker->tls.lost != 0 && !channel_end_try(&worker->to_master, &lost))
        return false;
    worker->tls.lost = 0;
    return true;
}

int worker_tls_open(struct worker *worker)
{
    bool own = worker->role == ROLE_SINGLE || worker->heritage->simulated;

    if (worker->cycle->tls.n == 0)
        return 0;
    if (worker->role == ROLE_SINGLE)
        tls_profiles_load_kernel(&worker->cycle->tls, &worker->log);
    if (own && open_own_engine(worker) == -1)
        return -1;
    if (!own)
        worker->stream.tls_link = tls_link_create(&worker->stream.net.loop, note_lost_link);
    if (worker->stream.tls_link != NULL && layer_init(&worker->stream.net) == 0) {
        layer_use_link(&worker->stream.net, worker->stream.tls_link);
        return 0;
    }
    log_write(&worker->log, LEVEL_EMERG, errno, "no memory for TLS");
    return -1;
}

void worker_tls_close(struct worker *worker)
{
    if (worker->stream.net.layers != NULL)
        layer_use_link(&worker->stream.net, NULL);
    tls_link_destroy(worker->stream.tls_link);
    worker->stream.tls_link = NULL;
    timer_del(&worker->stream.net.loop, &worker->tls.daily);
    if (worker->tls.changes != NULL)
        source_detach(&worker->stream.net.loop, worker->tls.changes);
    worker->tls.changes = NULL;
    tls_file_watch_close(&worker->tls.watch);
    if (worker->tls.engine != NULL)
        worker->cycle->engine->destroy(worker->tls.engine);
    worker->tls.engine = NULL;
    layer_done(&worker->stream.net);
}

void worker_tls_connect(struct worker *worker, struct channel_message *message)
{
    if (message->fd == -1 || worker->stream.tls_link == NULL || worker->tls.engine != NULL)
        return;
    worker->tls.link_n = message->argument;
    tls_link_connect(worker->stream.tls_link, message->fd);
    message->fd = -1;
}
