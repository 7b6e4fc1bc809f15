/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and ends a test: configuration, simulated world, workers; and checks at the end for
 * leftovers. The end destroys a start's objects in reverse order. */
#include "configuration/configuration.h"
#include "configuration/zones.h"
#include "kit/kit.h"
#include "module/module.h"
#include "os/files.h"
#include "os/proc.h"
#include "shm/map_private.h"

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

/* Reports a wrong use of a simulated socket as a fault. */
static void report_sim_fault(void *arg, const char *text)
{
    fb_test *test = arg;

    CHECK_KIND(test, KIT_TEST);
    kit_fault(test, "the connection of %s", text);
}

static void create_kit_worker(fb_test *test, unsigned i)
{
    struct kit_worker *own = &test->workers[i];

    own->kind = KIT_WORKER;
    own->test = test;
    own->number = i;
    own->channel = own->inbox = own->heritage.channel = -1;
    snprintf(own->label, sizeof(own->label), "%s", test->protocols[0]->name);
    if (test->several)
        snprintf(own->label, sizeof(own->label), "%s worker %u", test->protocols[0]->name, i);
    for (unsigned j = 0; j < kit_options_servers(&test->options); j++) {
        own->fds[j] = fcntl(test->target.fd, F_DUPFD_CLOEXEC, 0);
        if (own->fds[j] == -1)
            kit_misused("no descriptor for a listener");
        own->listeners[j] = sim_listener(test->sim, own->fds[j]);
    }
}

static void create_workers(fb_test *test)
{
    test->several = test->options.workers > 0;
    test->worker_n = test->several ? test->options.workers : 1;
    test->workers = kit_alloc(test->worker_n * sizeof(test->workers[0]));
    test->ways = kit_alloc((size_t)test->worker_n * test->worker_n * sizeof(test->ways[0]));
    for (unsigned i = 0; i < test->worker_n * test->worker_n; i++) {
        test->ways[i].fd = -1;
        STAILQ_INIT(&test->ways[i].packets);
    }
    for (unsigned i = 0; i < test->worker_n; i++)
        create_kit_worker(test, i);
    if (test->several)
        bells_open(&test->bells, test->worker_n);
}

static void create_world(fb_test *test)
{
    test->target.fd = kit_file_create("", test->log_path);
    test->target.level = LEVEL_DEBUG;
    test->access_fd = -1;
    if (test->options.log_format != NULL)
        test->access_fd = kit_file_create("", test->access_path);
    test->shared = shared_create(true);
    if (test->shared == NULL)
        kit_misused("no memory for what workers share");
    test->sim = sim_create();
    test->sim->on_fault = report_sim_fault;
    test->sim->fault_arg = test;
    test->began = test->sim->clock.mono_ms;
    kit_memory_init(&test->memory);
    create_workers(test);
}

static void destroy_workers(fb_test *test)
{
    for (unsigned i = 0; i < test->worker_n; i++) {
        for (unsigned j = 0; j < kit_options_servers(&test->options); j++)
            close(test->workers[i].fds[j]);
        test->workers[i].kind = 0;
    }
    if (test->several)
        bells_close(&test->bells);
    free(test->ways);
    free(test->workers);
}

static void destroy_world(fb_test *test)
{
    zones_close(&test->cycle->zones);
    cycle_destroy(&test->cycle);
    shared_destroy(&test->shared);
    sim_destroy(&test->sim);
    destroy_workers(test);
    os_temporary_close(test->target.fd, test->log_path);
    free(test->logged);
    if (test->access_fd != -1)
        os_temporary_close(test->access_fd, test->access_path);
    free(test->accessed);
    kit_peers_free(test);
    kit_names_free(test);
}

/* Checks and copies the protocol as the loader of modules does; NULL after a line about the
 * mistake. */
static const fb_protocol *adopt_protocol(struct arena *arena, const fb_protocol *protocol)
{
    char text[MODULE_TEXT];
    const char *wrong = module_check(protocol, text);
    const fb_protocol *copy = wrong == NULL ? module_copy(arena, protocol) : NULL;

    if (copy != NULL)
        copy = module_debug(arena, copy, protocol);
    if (wrong != NULL)
        fprintf(stderr, "forkbeard-test: the protocol %s\n", wrong);
    else if (copy == NULL)
        kit_misused("no memory for the protocol");
    else
        kit_states_widen(copy);
    return copy;
}

/* Returns the open descriptors, a line for each, after an empty line; the caller frees the text. */
static char *list_descriptors(void)
{
    char *text, what[128];
    int *fds;
    unsigned n;
    bool has_all;
    size_t size;
    FILE *list = open_memstream(&text, &size);

    if (list == NULL)
        kit_misused("no memory for the test");
    fputc('\n', list);
    has_all = os_descriptors_list(&fds, &n);
    for (unsigned i = 0; i < n; i++)
        if (os_descriptor_describe(fds[i], what, sizeof(what))) /* unless closed by a thread */
            fprintf(list, "%d (%s)\n", fds[i], what);
    free(fds);
    if (fclose(list) != 0 || !has_all)
        kit_misused("no memory for the test");
    return text;
}

/* Reports the descriptors that are only in the first list. */
static void report_descriptors(fb_test *test, const char *list, const char *other, const char *what)
{
    for (const char *end; list[1] != '\0'; list = end) {
        end = strchr(list + 1, '\n');
        if (memmem(other, strlen(other), list, (size_t)(end + 1 - list)) == NULL)
            kit_fault(test, "descriptor %.*s%s", (int)(end - list) - 1, list + 1, what);
    }
}

/* Compares the open descriptors with the list of before the start: a new descriptor was left open
 * by the protocol, a missing descriptor was not the protocol's to close. */
static void check_descriptors(fb_test *test)
{
    char *now = list_descriptors();

    report_descriptors(test, now, test->descriptors, " was not closed");
    report_descriptors(
        test, test->descriptors, now, ", which was open before the start, was closed");
    free(now);
    free(test->descriptors);
}

/* Destroys a test without, or no longer with, a simulated world; returns the number of faults. */
static int destroy_test(fb_test *test)
{
    int faults;

    arena_destroy(&test->arena);
    check_descriptors(test);
    faults = test->faults;
    test->kind = 0;
    free(test);
    return faults;
}

/* Adopts the first protocol and the further ones; false after a line. */
static bool adopt_protocols(fb_test *test, const fb_protocol *first)
{
    const fb_protocol *const *others = test->options.protocols;
    unsigned n = 0;

    test->protocols[n] = adopt_protocol(test->arena, first);
    while (test->protocols[n] != NULL && others != NULL && *others != NULL) {
        if (++n == KIT_PROTOCOLS_MAX)
            kit_misused("the options have more than %d protocols", KIT_PROTOCOLS_MAX - 1);
        test->protocols[n] = adopt_protocol(test->arena, *others++);
    }
    return test->protocols[n] != NULL;
}

/* Makes a test with its configuration; NULL after the mistakes were printed. */
static fb_test *create_test(const fb_protocol *protocol, const fb_test_options *options)
{
    fb_test *test = kit_alloc(sizeof(*test));

    test->kind = KIT_TEST;
    test->descriptors = list_descriptors();
    STAILQ_INIT(&test->peers);
    STAILQ_INIT(&test->servers);
    STAILQ_INIT(&test->name_servers);
    STAILQ_INIT(&test->name_sockets);
    STAILQ_INIT(&test->records);
    test->random = options->seed;
    test->arena = arena_create();
    if (test->arena == NULL)
        kit_misused("no memory for the test");
    test->options = *options;
    kit_options_keep(&test->options, test->arena);
    if (adopt_protocols(test, protocol)) {
        kit_watch_callbacks(test);
        snprintf(test->label, sizeof(test->label), "%s", protocol->name);
        test->cycle = kit_conf_load(test->protocols, &test->options, test->label);
    }
    if (test->cycle != NULL)
        return test;
    destroy_test(test);
    return NULL;
}

void kit_trouble(fb_test *test, uint64_t seed)
{
    sim_trouble(test->sim, seed, &trouble);
    test->dawdles = true;
    test->way_random = seed;
}

static void init_test_log(fb_test *test, struct log *log)
{
    log_init(log, &test->target, 1);
    log->plain = test->protocols[0]->name;
}

/* Places the keys of maps by the test's numbers: all runs meet the keys in equal order. */
static void seed_maps(fb_test *test)
{
    uint64_t random = test->options.seed; /* apart from protocols' random numbers */
    struct zone *zone;

    STAILQ_FOREACH (zone, &test->cycle->zones, link) {
        struct shm_map_header *header = zone_memory(zone);

        for (int i = 0; zone->kind == &shm_map_kind && i < 2; i++)
            header->seed[i] = sim_draw(&random, UINT32_MAX);
    }
}

/* Starts all workers; -1 when one could not, with the reason in the log, and no worker is left. */
static int start_workers(fb_test *test)
{
    struct log log;
    struct kit_worker *own;

    init_test_log(test, &log);
    if (configuration_open_zones(test->cycle, NULL, &log) == -1)
        return -1;
    seed_maps(test);
    for (unsigned i = 0; i < test->worker_n; i++) {
        if (kit_worker_start(&test->workers[i]) == 0) {
            if (test->several)
                fb_test_run(test); /* until the workers know all siblings, in worker order */
            continue;
        }
        KIT_FOREACH_ALIVE(own, test)
        kit_worker_end(own);
        return -1;
    }
    configuration_change_hooks(&test->accepted, test->cycle, &log);
    return 0;
}

/* Undoes a start that has failed, with a fault where memory is left. */
static void undo_start(fb_test *test, struct kit_start *start)
{
    if (!start->refused)
        fputs(fb_test_logged(test), stderr);
    if (test->memory.live > 0)
        kit_fault(test, "memory is left of a start that has failed, %" PRIu64 " pieces",
            test->memory.live);
    kit_memory_done(&test->memory);
    destroy_world(test);
    start->faults = destroy_test(test);
}

fb_test *kit_test_start(struct kit_start *start)
{
    fb_test_options own = kit_options(start->options);
    fb_test *test = create_test(start->protocol, &own);
    int result;

    if (test == NULL)
        return NULL;
    if (start->variant != NULL)
        snprintf(test->label, sizeof(test->label), "%s: %s", start->protocol->name, start->variant);
    create_world(test);
    if (start->refuses)
        fb_test_refuse_memory(test, start->after, 1);
    result = start_workers(test);
    start->refused = test->memory.refused > 0;
    if (result == -1) {
        undo_start(test, start);
        return NULL;
    }
    if (own.trouble != 0)
        kit_trouble(test, own.seed);
    test->memory.requested = test->memory.refused = test->memory.most = 0;
    return test;
}

fb_test *fb_test_start_with(const fb_protocol *protocol, const fb_test_options *options)
{
    struct kit_start start = { .protocol = protocol, .options = options };

    return kit_test_start(&start);
}

fb_test *fb_test_start(const fb_protocol *protocol, const char *server)
{
    const fb_test_options options = { .size = sizeof(options), .server = server };

    return fb_test_start_with(protocol, &options);
}

/* Reports log lines with the text as faults. */
static void check_lines(fb_test *test, const char *text)
{
    const char *line = fb_test_logged(test);

    while ((line = strstr(line, text)) != NULL) {
        size_t n = strcspn(line, "\n");

        kit_fault(test, "logged %.*s", (int)n - 2, line + 2);
        line += n;
    }
}

static uint64_t sum_active(const struct zone *zone)
{
    return zone != NULL ? stats_sum_active(zone_memory(zone)) : 0;
}

/* Reports as faults all connections and memory that the workers have left. */
static void check_test_left(fb_test *test)
{
    uint64_t totals[COUNTERS];

    shared_totals(test->shared, totals);
    if (totals[COUNTER_ACTIVE] > 0)
        kit_fault(test, "connections are left");
    if (sum_active(test->cycle->stream.stats) > 0)
        kit_fault(test, "clients are left in the statistics");
    if (sum_active(test->cycle->stream.tries) > 0)
        kit_fault(test, "tries are left in the statistics");
    if (test->closings + test->became_n != test->openings)
        kit_fault(test, "%" PRIu64 " connections were opened, and %" PRIu64 " were closed",
            test->openings, test->closings + test->became_n);
    if (test->memory.live > 0)
        kit_fault(test, "memory is left, %" PRIu64 " pieces", test->memory.live);
}

int fb_test_end(fb_test **testp)
{
    fb_test *test = *testp;
    struct kit_worker *own;
    struct log log;

    CHECK_KIND(test, KIT_TEST);
    *testp = NULL;
    sim_trouble(test->sim, 0, NULL);
    test->dawdles = false;
    for (unsigned i = 0; i < test->worker_n * test->worker_n; i++)
        test->ways[i].how = FB_TEST_DELIVERS;
    test->job_ms = test->jobs_due = 0;
    fb_test_run(test);
    KIT_FOREACH_ALIVE(own, test)
    net_fail_all(&own->worker.stream.net, FB_DRAINED);
    fb_test_run(test); /* `closed` may have begun something */
    KIT_FOREACH_ALIVE(own, test)
    kit_worker_end(own);
    init_test_log(test, &log);
    configuration_change_hooks(&test->accepted, NULL, &log);
    check_lines(test, ": [alert] *"); /* about a connection, or a watched descriptor */
    check_lines(test, ": [alert] descriptor ");
    check_test_left(test);
    kit_memory_done(&test->memory);
    destroy_world(test);
    return destroy_test(test);
}

int fb_test_faults(const fb_test *test)
{
    return test->faults;
}

const char *fb_test_logged(fb_test *test)
{
    free(test->logged);
    test->logged = kit_file_read(test->target.fd);
    return test->logged;
}

const char *fb_test_access_log(fb_test *test)
{
    CHECK_KIND(test, KIT_TEST);
    if (test->access_fd == -1)
        kit_misused("fb_test_access_log(): the options have no log_format");
    fb_test_run(test);
    free(test->accessed);
    test->accessed = kit_file_read(test->access_fd);
    return test->accessed;
}
