/* SPDX-License-Identifier: BSD-2-Clause */
/* The lives of a test's workers. A start has the worker set itself up as in the daemon, from a
 * configuration of its own when there are several; an end gives back what the start has taken, in
 * reverse order. Does nothing to the worker in between. */
#include "configuration/zones.h"
#include "kit/kit.h"
#include "tls/link_local.h"
#include "worker/accept.h"
#include "worker/messages_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of a test's only generation. */
#define GENERATION 1

static void fill_random(struct worker *worker, void *p, size_t n)
{
    uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)sim_draw(&kit_test_of(worker)->random, 256);
}

static void report_misuse(struct stream *stream, const char *call)
{
    struct worker *worker = container_of(stream, struct worker, stream);

    if (!kit_worker_of(worker)->is_killed)
        kit_fault(kit_test_of(worker), "%s() of a connection that had ended", call);
}

/* Reports a mistake that the checks of calls and memory have found. */
static void report_mistake(struct worker *worker, const char *text)
{
    if (!kit_worker_of(worker)->is_killed)
        kit_fault(kit_test_of(worker), "%s", text);
}

/* Gives the worker listeners: real descriptors, standing for simulated sockets. An address of a
 * `stream` directive gets none. */
static void hand_listeners(struct kit_worker *own)
{
    struct listener *listener;

    STAILQ_FOREACH (listener, &own->cycle->stream.listeners.list, link) {
        const struct address *at = &listener->address;
        unsigned i = ntohs(at->in.sin_port) - KIT_FIRST_PORT;

        if (at->any.sa_family != AF_INET || ntohl(at->in.sin_addr.s_addr) != KIT_ADDRESS ||
            i >= kit_options_servers(&own->test->options))
            continue;
        own->handed[i] = own->fds[i];
        listener->fds = &own->handed[i];
        listener->fd_n = listener->kept_n = 1; /* the kit's to close */
        memcpy(&own->listeners[i]->local, &at->any, at->length);
        own->listeners[i]->local_length = at->length;
    }
}

/* Replaces settings of the configuration: logs, mechanism, spare slots, and the sharing of clients,
 * because a client names its worker here. */
static void change_cycle(struct kit_worker *own)
{
    fb_test *test = own->test;
    struct cycle *cycle = own->cycle;
    struct server *server;

    cycle->core.logs = &test->target;
    cycle->core.log_n = 1;
    cycle->core.routed_level = LEVEL_EMERG;
    STAILQ_FOREACH (server, &cycle->stream.servers, link)
        server->route = NULL;
    cycle->core.timer_resolution = 0;
    cycle->core.worker_processes = test->worker_n;
    cycle->events.mechanism = &test->sim->edge;
    cycle->events.mechanism_values = mechanism_defaults(cycle->events.mechanism);
    cycle->events.stall_threshold = 0; /* no time passes */
    cycle->events.accept_mutex = cycle->events.accept_share = 0;
    cycle->events.worker_connections += KIT_SPARE_SLOTS;
    kit_names_open(test, cycle);
    for (unsigned i = 0; i < cycle->core.other_log_n; i++)
        if (cycle->core.other_logs[i]->path != NULL &&
            strcmp(cycle->core.other_logs[i]->path, KIT_ACCESS_PATH) == 0)
            cycle->core.other_logs[i]->fd = test->access_fd;
}

/* Returns -1 when the zones could not be opened; the reason is in the log. */
static int load_cycle(struct kit_worker *own, struct log *log)
{
    fb_test *test = own->test;

    own->cycle = test->cycle;
    if (test->several)
        own->cycle = kit_conf_load(test->protocols, &test->options, test->label);
    if (own->cycle == NULL)
        kit_misused("the configuration cannot be read again");
    if (test->several && configuration_open_zones(own->cycle, &test->cycle->zones, log) == -1) {
        cycle_destroy(&own->cycle);
        return -1;
    }
    hand_listeners(own);
    change_cycle(own);
    return 0;
}

static void open_channel(struct kit_worker *own)
{
    int ends[2];

    own->channel = own->inbox = own->heritage.channel = -1;
    if (!own->test->several)
        return;
    if (channel_open(ends) == -1)
        kit_misused("no descriptors for the channel of a worker");
    own->channel = ends[0];
    own->heritage.channel = ends[1];
}

static void init_heritage(struct kit_worker *own)
{
    fb_test *test = own->test;

    own->heritage = (struct heritage) {
        .cycle = own->cycle,
        .shared = test->shared,
        .index = own->number,
        .place = slot_place(GENERATION, own->number),
        .bells = test->several ? &test->bells : NULL,
        .memory = &test->memory.memory,
        .simulated = true,
        .random = fill_random,
        .mistake = report_mistake,
    };
    if (!slot_acquire(test->shared, &own->heritage.slot))
        kit_misused("no slot for a worker");
    slot_set_place(test->shared, own->heritage.slot, own->heritage.place);
    zones_slot_acquired(&test->cycle->zones, own->heritage.slot);
    open_channel(own);
}

static void close_fd(int *fd)
{
    if (*fd != -1)
        close(*fd);
    *fd = -1;
}

/* Gives back all that a life has beside the struct worker. */
static void release_life(struct kit_worker *own)
{
    fb_test *test = own->test;

    own->alive = false;
    zones_slot_released(&test->cycle->zones, own->heritage.slot);
    slot_release(test->shared, own->heritage.slot);
    kit_ways_clear(test, own);
    close_fd(&own->inbox);
    close_fd(&own->channel);
    close_fd(&own->heritage.channel);
    if (test->several) {
        zones_close(&own->cycle->zones);
        cycle_destroy(&own->cycle);
    }
    own->cycle = NULL;
}

void kit_keeper_set(struct kit_worker *own)
{
    struct tls_link *link = own->worker.stream.tls_link;

    if (link == NULL)
        return;
    tls_link_hold_local(link, own->test->keeper == FB_TEST_KEEPER_LATE);
    if (own->test->keeper == FB_TEST_KEEPER_LOST)
        tls_link_lose_local(link);
}

int kit_worker_start(struct kit_worker *own)
{
    fb_test *test = own->test;
    struct worker *worker = &own->worker;
    struct log log;

    assert(!own->alive && own->cycle == NULL);
    log_init(&log, &test->target, 1);
    log.plain = own->label;
    if (load_cycle(own, &log) == -1)
        return -1;
    init_heritage(own);
    if (worker_init(worker, &own->heritage, test->several ? ROLE_WORKER : ROLE_SINGLE) == -1) {
        release_life(own);
        return -1;
    }
    own->alive = true;
    own->jobs = 0;
    worker->log.plain = own->label;
    worker->stream.misused = report_misuse;
    worker->stream.net.connections_max -= KIT_SPARE_SLOTS;
    kit_slots_guard(worker);
    kit_keeper_set(own);
    accept_open(worker);
    return 0;
}

void kit_worker_end(struct kit_worker *own)
{
    assert(own->alive);
    kit_slots_unguard(&own->worker);
    worker_done(&own->worker);
    own->test->became_n += own->worker.stream.became_n;
    if (own->worker.stream.net.connection_n > 0)
        kit_fault(own->test, "connections are left");
    if (timers_wait(&kit_loop_of(own)->timers) != -1)
        kit_fault(own->test, "timers are left");
    release_life(own);
}
