/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads between all ways of accepting, and compares the daemon's resources at the end with the
 * start. */
#include "daemon/soak_transitions.h"

#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"
#include "daemon/rate_clients.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIFE 100  /* reloads that a long session outlives */
#define WIDEST 21 /* the reload with the most sockets of reuseport, which are kept from then on */
/* Allowed growth of the master: some bytes a reload; a configuration takes more than 10 kB. A
 * hundred of them live at once under load, and afterwards every block in use (130, of 47 kB in all)
 * may keep its page, anywhere among them: so a first part of the reloads comes before the memory is
 * measured, and the rest may add some pages. */
#define GROWTH_KB 512
#define FIRST_PART(reloads) ((reloads) / 5)

static const struct {
    const char *events, *parameter;
} ways[SOAK_TRANSITIONS_MODES] = {
    { "use poll; accept_mutex on;", "" },
    { "accept_mutex off;", "" },
    { "accept_mutex off;", "reuseport" },
};

/* In an order with every succession of ways, with more and with fewer workers. */
static const unsigned char way_order[] = { 0, 1, 2, 0, 0, 2, 1, 1, 0, 2, 2 };
static const unsigned char worker_order[] = { 2, 4, 1, 3, 3, 2, 1, 4, 2, 3 };

/* The resources that the daemon has. */
struct footprint {
    unsigned processes, descriptors, worker_descriptors, mappings;
    unsigned anonymous_kb; /* the master's */
    bool sanitized;
};

struct run {
    const struct soak_transitions_plan *plan;
    struct daemon *daemon;
    struct rate_clients clients;
    unsigned most_processes;
    unsigned reloads;
    int64_t ms; /* the latest part under load has lasted */
    int asker;  /* the client of the latest reload, awaiting a reply; -1: none */
};

static void configure_daemon(const struct run *run, unsigned i)
{
    unsigned way =
        run->plan->way >= 0 ? (unsigned)run->plan->way : way_order[i % sizeof(way_order)];

    daemon_configure(run->daemon,
        "worker_processes %u; max_generations 0; worker_rlimit_nofile 8192;\n"
        "events { worker_connections %u; accept_mutex_delay 50ms; multi_accept %s; %s }\n"
        "stream { server { listen 127.0.0.1:$0 backlog=%u %s; echo; }\n"
        "server { listen 127.0.0.1:$%u %s; listen unix:$D/socket%u; discard; } }\n",
        worker_order[i % sizeof(worker_order)], mechanisms_bounded(4096), i % 4 < 2 ? "off" : "on",
        ways[way].events, i % 3 == 0 ? 4096 : 2048, ways[way].parameter, 1 + i % 2,
        ways[way].parameter, i % 2);
}

static void finish_reload(struct run *run)
{
    struct json_value answer;

    if (run->asker == -1)
        return;
    answer = control_receive(run->asker);
    ck_assert_msg(control_is_ok(answer), "%.*s", (int)answer.n, answer.text);
    close(run->asker);
    run->asker = -1;
}

/* Whether generation `number`, or a later one, serves. */
static bool has_come(const struct run *run, unsigned number)
{
    struct json_value status = control_ask(run->daemon, "status"), last;

    last = control_at(status, "generations", control_count(status, "generations") - 1);
    return control_number(last, "number") >= number &&
           strcmp(control_text(last, "state"), "live") == 0;
}

/* Reloads, without waiting for the new generation to prove itself: the next reload ends that. */
static void reload_daemon(struct run *run, unsigned i)
{
    int asker = control_open(run->daemon);

    configure_daemon(run, i);
    control_send(asker, "reload");
    finish_reload(run);
    run->asker = asker;
    run->reloads++;
    WAIT_FOR(has_come(run, run->reloads + 1));
}

/* "Name:   number" in /proc/PID/status. */
static unsigned status_of(pid_t pid, const char *name)
{
    const char *line = strstr(proc_text(pid, "status"), name);
    unsigned n = 0;

    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line + strlen(name), "%u", &n), 1);
    return n;
}

/* The memory of the master. A sanitizer keeps freed memory, so the measure says nothing there. */
static void measure_memory(pid_t pid, struct footprint *print)
{
    char path[64], line[512];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        print->mappings++;
        if (strstr(line, "libasan") != NULL)
            print->sanitized = true;
    }
    fclose(file);
    print->anonymous_kb = status_of(pid, "RssAnon:");
}

/* The clients of the control socket are gone some moments after their answers. */
static unsigned fewest_descriptors(pid_t pid)
{
    unsigned fewest = proc_descriptors(pid);

    for (int i = 0; i < 50; i++) {
        unsigned n = proc_descriptors(pid);

        if (n < fewest)
            fewest = n;
        pause_briefly();
    }
    return fewest;
}

/* Waits until only the workers of the last reload are left. */
static struct footprint measure_footprint(struct run *run, unsigned i)
{
    unsigned workers = worker_order[i % sizeof(worker_order)];
    pid_t list[8], master = run->daemon->pid;
    struct footprint print = { .worker_descriptors = 0 };

    finish_reload(run);
    WAIT_FOR(proc_child_n(master) == workers);
    WAIT_FOR(control_count(control_ask(run->daemon, "status"), "generations") == 1);
    ck_assert_uint_eq(proc_children(master, list, 8), workers);
    print.processes = workers + 1;
    print.descriptors = fewest_descriptors(master);
    for (unsigned w = 0; w < workers; w++)
        print.worker_descriptors += proc_descriptors(list[w]);
    measure_memory(master, &print);
    return print;
}

/* Renews as many long sessions as let each live for LIFE reloads. */
static void renew_sessions(struct run *run, unsigned i)
{
    unsigned n = run->plan->long_n;

    rate_clients_renew(&run->clients, n * (i + 1) / LIFE - n * i / LIFE);
}

static void reload_many(struct run *run, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        unsigned n;

        reload_daemon(run, i);
        renew_sessions(run, i);
        rate_clients_wait(&run->clients, run->plan->rate / 40);
        n = proc_child_n(run->daemon->pid);
        if (n > run->most_processes)
            run->most_processes = n;
        if (i % 50 == 49)
            rate_clients_check(&run->clients);
    }
}

/* Reloads while clients come and others stay, back to the first configuration. */
static struct footprint reload_under_load(struct run *run, unsigned from, unsigned to)
{
    struct rate_clients_options options = { run->daemon->ports[0], run->plan->rate,
        run->plan->long_n, 500, 0 };
    int64_t begun_ms = now_ms();

    rate_clients_start(&run->clients, &options);
    reload_many(run, from, to);
    rate_clients_stop(&run->clients);
    run->ms = now_ms() - begun_ms;
    reload_daemon(run, 0);
    return measure_footprint(run, 0);
}

static void print_report(struct run *run, const struct footprint *a, const struct footprint *b)
{
    struct rate_clients *clients = &run->clients;

    printf("reloads, %s: %u in %.1f s, %u sessions (%.0f a second, %u not begun when due), %u "
           "refused, %u reset, slowest %u ms; %u long ones, renewed %u times, %u exchanges, %u cut "
           "off, %u wrong; at most %u processes, %u then %u at the end, %u then %u descriptors, %u "
           "then %u of workers, %u then %u mappings, %u then %u kB\n",
        run->plan->way >= 0
            ? (*ways[run->plan->way].parameter != '\0' ? ways[run->plan->way].parameter
                                                       : ways[run->plan->way].events)
            : "each way",
        run->plan->reloads, (double)run->ms / 1000, clients->echoed,
        clients->echoed * 1000.0 / (double)run->ms, clients->skipped, clients->refused,
        clients->reset, clients->slowest_ms, run->plan->long_n, clients->renewed,
        clients->exchanges, clients->long_ended, clients->wrong, run->most_processes, a->processes,
        b->processes, a->descriptors, b->descriptors, a->worker_descriptors, b->worker_descriptors,
        a->mappings, b->mappings, a->anonymous_kb, b->anonymous_kb);
    fflush(stdout);
}

void soak_transitions(const struct soak_transitions_plan *plan)
{
    struct run run = { .plan = plan, .daemon = daemon_create(3), .asker = -1 };
    unsigned first = FIRST_PART(plan->reloads);
    struct footprint before, after;

    configure_daemon(&run, 0);
    daemon_start(run.daemon);
    reload_daemon(&run, WIDEST);
    for (unsigned i = plan->reloads / 20 + 1; i-- > 0;) /* memory is what it will be, mostly */
        reload_daemon(&run, i);
    before = reload_under_load(&run, 1, first);
    rate_clients_check(&run.clients);
    after = reload_under_load(&run, first, plan->reloads);
    print_report(&run, &before, &after);

    rate_clients_check(&run.clients);
    ck_assert_uint_eq(after.descriptors, before.descriptors);
    ck_assert_uint_eq(after.worker_descriptors, before.worker_descriptors);
    if (!after.sanitized) {
        ck_assert_uint_eq(after.mappings, before.mappings);
        ck_assert_uint_le(after.anonymous_kb, before.anonymous_kb + GROWTH_KB);
    }
    daemon_finish(run.daemon);
}
