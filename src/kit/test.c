/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and ends a test: its configuration, its simulated world, its worker; and checks at the end
 * that nothing is left. What a start has made, the end destroys in reverse order. */
#include "kit/kit.h"
#include "module/module.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct sim_trouble trouble = {
    .partial_send = 300,
    .partial_recv = 300,
    .again = 200,
    .spurious = 200,
    .late = 300,
};

static void random_bytes(struct fb_worker *worker, void *p, size_t n)
{
    uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)kit_random(&kit_test_of(worker)->random, 256);
}

static void report_misuse(struct stream *stream, const char *call)
{
    struct fb_worker *worker = container_of(stream, struct fb_worker, stream);

    kit_fault(kit_test_of(worker), "%s() of a connection that had ended", call);
}

/* Reports a wrong use of a simulated socket as a fault. */
static void sim_fault(void *arg, const char *text)
{
    fb_test *test = arg;

    CHECK_KIND(test, KIT_TEST);
    kit_fault(test, "the connection of %s", text);
}

fb_test_options kit_options(const fb_test_options *options)
{
    fb_test_options own = { .size = sizeof(own) };

    memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
    if (own.server == NULL)
        kit_misused("the options have no server directives");
    return own;
}

/* Opens the listener. The worker closes its descriptor, so it has a real one, which stands for a
 * simulated socket. */
static void open_listener(fb_test *test)
{
    struct listener *listener = STAILQ_FIRST(&test->cycle->stream.listeners.list);

    test->listener_fd = fcntl(test->target.fd, F_DUPFD_CLOEXEC, 0);
    if (test->listener_fd == -1)
        kit_misused("no descriptor for the listener");
    listener->fds = &test->listener_fd;
    listener->fd_n = 1;
    test->listener = sim_listener(test->sim, test->listener_fd);
    memcpy(&test->listener->local, &listener->address.any, listener->address.length);
    test->listener->local_length = listener->address.length;
}

/* Replaces the settings that a test does not take from its configuration: log, mechanism, and spare
 * slots. */
static void change_cycle(fb_test *test)
{
    struct cycle *cycle = test->cycle;

    cycle->core.logs = &test->target;
    cycle->core.log_n = 1;
    cycle->core.timer_resolution = 0;
    cycle->events.mechanism = sim_edge(test->sim);
    cycle->events.mechanism_values = mechanism_defaults(cycle->events.mechanism);
    cycle->events.stall_threshold = 0; /* no time passes */
    cycle->events.worker_connections += KIT_SPARE_SLOTS;
}

/* Returns -1 when the worker could not start; the reason is in the log. */
static int start_worker(fb_test *test)
{
    struct fb_worker *worker = &test->worker;
    struct log log;

    log_init(&log, &test->target, 1);
    log.plain = test->protocols[0]->name;
    if (zones_open(&test->cycle->zones, NULL, &log) == -1)
        return -1;
    zones_slot_acquired(&test->cycle->zones, test->heritage.slot);
    if (worker_init(worker, &test->heritage, ROLE_SINGLE) == -1)
        return -1;
    worker->log.plain = test->protocols[0]->name;
    worker->random = random_bytes;
    worker->stream.misused = report_misuse;
    worker->stream.net.connections_max -= KIT_SPARE_SLOTS;
    kit_slots_guard(test);
    accept_open(worker);
    return 0;
}

static void create_world(fb_test *test)
{
    test->target.fd = kit_file_create("", test->log_path);
    test->target.level = LEVEL_DEBUG;
    test->shared = shared_create_single();
    test->heritage = (struct heritage) {
        .cycle = test->cycle,
        .shared = test->shared,
        .channel = -1,
        .memory = &test->memory.memory,
    };
    if (test->shared == NULL || !slot_acquire(test->shared, &test->heritage.slot))
        kit_misused("no memory for what workers share");
    test->sim = sim_create();
    sim_on_fault(test->sim, sim_fault, test);
    kit_memory_init(&test->memory);
    open_listener(test);
    change_cycle(test);
}

static void destroy_world(fb_test *test)
{
    zones_close(&test->cycle->zones);
    cycle_destroy(&test->cycle);
    shared_destroy(&test->shared);
    sim_destroy(&test->sim);
    kit_file_close(test->target.fd, test->log_path);
    free(test->logged);
    kit_peers_free(test);
}

/* Checks and copies the protocol as the loader of modules does; NULL after a line that says what is
 * wrong with it. */
static const fb_protocol *adopt_protocol(struct arena *arena, const fb_protocol *protocol)
{
    char text[MODULE_TEXT];
    const char *wrong = module_check(protocol, text);
    const fb_protocol *copy = wrong == NULL ? module_copy(arena, protocol) : NULL;

    if (wrong != NULL)
        fprintf(stderr, "forkbeard-test: the protocol %s\n", wrong);
    else if (copy == NULL)
        kit_misused("no memory for the protocol");
    return copy;
}

/* Destroys a test whose simulated world does not exist, or not any more. */
static void destroy_test(fb_test *test)
{
    arena_destroy(&test->arena);
    kit_descriptors_compare(test, &test->before);
    test->kind = 0;
    free(test);
}

/* Makes a test with its configuration; NULL after the mistakes were printed. */
static fb_test *create_test(const fb_protocol *protocol, const fb_test_options *options)
{
    fb_test *test = kit_alloc(sizeof(*test));

    test->kind = KIT_TEST;
    kit_descriptors_list(&test->before);
    STAILQ_INIT(&test->peers);
    STAILQ_INIT(&test->servers);
    test->random = options->seed;
    test->arena = arena_create();
    if (test->arena == NULL)
        kit_misused("no memory for the test");
    test->protocols[0] = adopt_protocol(test->arena, protocol);
    if (test->protocols[0] != NULL) {
        kit_watch_callbacks(test);
        snprintf(test->label, sizeof(test->label), "%s", protocol->name);
        test->cycle = kit_conf_load(test->protocols, options, test->label);
    }
    if (test->cycle != NULL)
        return test;
    destroy_test(test);
    return NULL;
}

void kit_trouble(fb_test *test, uint64_t seed)
{
    sim_trouble(test->sim, seed, &trouble);
}

fb_test *fb_test_start_with(const fb_protocol *protocol, const fb_test_options *options)
{
    fb_test_options own = kit_options(options);
    fb_test *test = create_test(protocol, &own);

    if (test == NULL)
        return NULL;
    create_world(test);
    if (start_worker(test) == -1) {
        fputs(fb_test_logged(test), stderr);
        if (test->listener_fd != -1)
            close(test->listener_fd);
        destroy_world(test);
        destroy_test(test);
        return NULL;
    }
    if (own.trouble != 0)
        kit_trouble(test, own.seed);
    test->memory.requested = 0;
    return test;
}

fb_test *fb_test_start(const fb_protocol *protocol, const char *server)
{
    const fb_test_options options = { .size = sizeof(options), .server = server };

    return fb_test_start_with(protocol, &options);
}

/* Reports each log line of level alert about a connection as a fault. */
static void check_log(fb_test *test)
{
    const char *line = fb_test_logged(test);

    while ((line = strstr(line, ": [alert] *")) != NULL) {
        size_t n = strcspn(line, "\n");

        kit_fault(test, "logged %.*s", (int)n - 2, line + 2);
        line += n;
    }
}

/* Reports as faults all connections, timers and memory that the worker has left. */
static void check_left(fb_test *test)
{
    const struct net *net = &test->worker.stream.net;
    uint64_t totals[COUNTERS];

    shared_totals(test->shared, totals);
    if (net->connection_n > 0 || totals[COUNTER_ACTIVE] > 0)
        kit_fault(test, "connections are left");
    if (test->closings != test->openings)
        kit_fault(test, "%" PRIu64 " connections were opened, and %" PRIu64 " were closed",
            test->openings, test->closings);
    if (timers_wait(&net->loop.timers) != -1)
        kit_fault(test, "timers are left");
    if (test->memory.live > 0)
        kit_fault(test, "memory is left, %" PRIu64 " pieces", test->memory.live);
}

int fb_test_end(fb_test **testp)
{
    fb_test *test = *testp;
    int faults;

    CHECK_KIND(test, KIT_TEST);
    *testp = NULL;
    sim_trouble(test->sim, 0, NULL);
    fb_test_run(test);
    net_fail_all(&test->worker.stream.net, FB_DRAINED);
    fb_test_run(test); /* `closed` may have begun something */
    kit_slots_unguard(test);
    worker_done(&test->worker);
    check_log(test);
    check_left(test);
    destroy_world(test);
    arena_destroy(&test->arena);
    kit_descriptors_compare(test, &test->before);
    faults = test->faults;
    test->kind = 0;
    free(test);
    return faults;
}

int fb_test_faults(const fb_test *test)
{
    return test->faults;
}

fb_worker *fb_test_worker(fb_test *test)
{
    CHECK_KIND(test, KIT_TEST);
    return &test->worker;
}

const char *fb_test_logged(fb_test *test)
{
    free(test->logged);
    test->logged = kit_file_read(test->target.fd);
    return test->logged;
}
