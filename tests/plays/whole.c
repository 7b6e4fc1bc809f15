/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins whole workers, and runs the workers until the exit. */
#include "plays/whole.h"

#include "configuration/logs.h"
#include "features/features.h"
#include "net/listener_set.h"
#include "plays/play_private.h"
#include "process/role.h"
#include "protocols/table.h"
#include "worker/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* Loads a master's configuration again; the file may have changed. */
static struct cycle *load_again(const struct play *play, const struct cycle *cycle)
{
    char conf[128], pid[128], error_log[128];
    struct cycle_options options = {
        .conf = conf,
        .pid = pid,
        .error_log = error_log,
        .module_directory = play->directory,
        .protocols = protocols_builtin,
        .features = features_all,
    };
    const struct mechanism *mechanism;
    struct log_target standard_error;
    struct cycle *again;
    struct log log;
    FILE *file;

    snprintf(conf, sizeof(conf), "%s/conf.worker", play->directory);
    snprintf(pid, sizeof(pid), "%s/pid", play->directory);
    snprintf(error_log, sizeof(error_log), "%s/error.log", play->directory);
    file = fopen(conf, "we");
    test_require(file != NULL);
    conf_dump(&cycle->source, file);
    test_require(fclose(file) == 0);
    log_init_plain(&log, &standard_error, "forkbeard");
    again = cycle_load(&options, &log, STDERR_FILENO);
    test_require(again != NULL);
    mechanism = play_mechanism(strcmp(again->events.mechanism->name, "poll") != 0);
    again->events.mechanism = mechanism;
    again->events.mechanism_values = mechanism_defaults(mechanism);
    return again;
}

/* Gives the listeners the descriptors of a copy of the master's table. */
static void copy_listeners(struct cycle *to, const struct cycle *from)
{
    const struct listener *listener;
    struct listener *copy;
    unsigned n = 0;

    STAILQ_FOREACH (copy, &to->stream.listeners.list, link)
        n++;
    STAILQ_FOREACH (listener, &from->stream.listeners.list, link) {
        copy = listener_set_at(&to->stream.listeners, &listener->address);
        test_require(copy != NULL && n-- > 0);
        copy->fds = arena_alloc(to->arena, (listener->fd_n + 1) * sizeof(copy->fds[0]));
        test_require(copy->fds != NULL);
        memcpy(copy->fds, listener->fds, listener->fd_n * sizeof(copy->fds[0]));
        copy->fd_n = listener->fd_n;
    }
    test_require(n == 0);
}

/* In the master's thread: maps the zones with the rights of the slot's worker. */
static void enter_zones(struct cycle *to, const struct cycle *from, struct slot_id slot)
{
    struct log_target standard_error;
    struct zone *zone;
    struct log log;

    STAILQ_FOREACH (zone, &to->zones, link) {
        const struct segment *segment = &zones_find(&from->zones, zone->name)->segment;

        zone->segment.fd = fcntl(segment->fd, F_DUPFD_CLOEXEC, 0);
        zone->segment.size = segment->size;
        test_require(zone->segment.fd != -1);
    }
    log_init_plain(&log, &standard_error, "forkbeard");
    test_require(zones_enter(&to->zones, slot, &log) == 0); /* closes the descriptors */
}

static void copy_tries(struct upstream *to, const struct upstream *from)
{
    const struct upstream_server *of = STAILQ_FIRST(&from->servers);
    struct upstream_server *server;

    to->waits.entry = from->waits.entry;
    STAILQ_FOREACH (server, &to->servers, link) {
        test_require(of != NULL);
        server->stats.entry = of->stats.entry;
        of = STAILQ_NEXT(of, link);
    }
}

/* Gives the worker's configuration the places in the statistics, of the same file. */
static void copy_stats(struct stream_settings *to, const struct stream_settings *from)
{
    const struct listen_stats *of = STAILQ_FIRST(&from->listen_stats);
    const struct upstream *group = STAILQ_FIRST(&from->upstreams);
    struct upstream *upstream;
    struct listen_stats *listen;

    to->stats_shape = from->stats_shape;
    to->tries_shape = from->tries_shape;
    STAILQ_FOREACH (listen, &to->listen_stats, link) {
        test_require(of != NULL);
        listen->entry = of->entry;
        of = STAILQ_NEXT(of, link);
    }
    STAILQ_FOREACH (upstream, &to->upstreams, link) {
        test_require(group != NULL);
        copy_tries(upstream, group);
        group = STAILQ_NEXT(group, link);
    }
}

static void copy_bells(struct bells *to, const struct bells *from)
{
    *to = *from;
    to->fds = calloc(from->fd_n + 1, sizeof(to->fds[0]));
    test_require(to->fds != NULL);
    if (from->fd_n > 0)
        memcpy(to->fds, from->fds, from->fd_n * sizeof(to->fds[0]));
    if (from->fds == NULL) {
        free(to->fds);
        to->fds = NULL;
    }
}

static void random_bytes(struct worker *worker, void *p, size_t n)
{
    uint8_t *bytes = p;

    (void)worker;
    while (n-- > 0)
        *bytes++ = (uint8_t)random_below(&play_now->state, 256);
}

static NORETURN void run(void *arg)
{
    struct play_process *process = arg;
    struct play_whole *whole = process->whole;
    struct heritage *heritage = &whole->heritage;
    struct log_target standard_error;
    struct log log;
    int status;

    role_set(ROLE_WORKER);
    descriptors_close_others(&heritage->descriptors);
    log_init_plain(&log, &standard_error, "forkbeard");
    test_require(logs_open(&heritage->cycle->core, &log) == 0);
    status = worker_main(heritage, ROLE_WORKER);
    process_ops->exit(status);
}

void play_whole_begin(struct play_process *process, const struct heritage *heritage)
{
    struct play_whole *whole = calloc(1, sizeof(*whole));
    struct stat st;

    test_require(whole != NULL);
    whole->heritage = (struct heritage) {
        .cycle = load_again(process->play, heritage->cycle),
        .shared = heritage->shared,
        .slot = heritage->slot,
        .index = heritage->index,
        .place = heritage->place,
        .channel = heritage->channel,
        .simulated = true,
        .random = random_bytes,
    };
    if (heritage->bells != NULL) {
        copy_bells(&whole->bells, heritage->bells);
        whole->heritage.bells = &whole->bells;
    }
    copy_listeners(whole->heritage.cycle, heritage->cycle);
    copy_stats(&whole->heritage.cycle->stream, &heritage->cycle->stream);
    test_require(fstat(heritage->cycle->stream.stats->segment.fd, &st) == 0);
    whole->stats = st.st_ino;
    enter_zones(whole->heritage.cycle, heritage->cycle, heritage->slot);
    descriptors_add_all(&whole->heritage.descriptors, &heritage->descriptors);
    descriptors_add(&whole->heritage.descriptors, process->play->passing[1]);
    process->whole = whole;
    process->child = run;
    process->arg = process;
    play_process_begin(process);
}

/* The memory of a killed worker, apart from its configuration, is lost. */
void play_whole_destroy(struct play_whole **whole)
{
    zones_close(&(*whole)->heritage.cycle->zones);
    cycle_destroy(&(*whole)->heritage.cycle);
    descriptors_done(&(*whole)->heritage.descriptors);
    free((*whole)->bells.fds);
    free(*whole);
    *whole = NULL;
}

bool play_whole_is_woken(struct play_process *process)
{
    return process->whole->woken ||
           (process->whole->waits && play_is_readable(process->wakeups_seen));
}

uint64_t play_whole_counter(const struct play_process *process, enum counter counter)
{
    const struct heritage *heritage = &process->whole->heritage;

    return atomic_load(&shared_slot(heritage->shared, heritage->slot)->counters.n[counter]);
}
