/* SPDX-License-Identifier: BSD-2-Clause */
/* load [OPTION ...] ADDRESS:PORT: makes load on a server, and reports what came of it as lines of a
 * key and a value. The parent process starts the others, measures the time, and reads the server's
 * accounts in /proc; all sockets are theirs. */
#include "bench/load.h"

#include "bench/tree.h"

#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: load [OPTION ...] ADDRESS:PORT\n"
    "  -k KIND     echo, bulk (the server sends without end; an operation is that of -s), return\n"
    "              (connect, read until the end), message (connect, echo, close), idle\n"
    "              (connections that do nothing), hold (idle until standard input ends)\n"
    "  -c N        connections at once (1)\n"
    "  -s BYTES    of a message (64)\n"
    "  -d N        messages of a connection under way at once (1)\n"
    "  -n N        operations in all; else\n"
    "  -t SECONDS  measured (2), after\n"
    "  -w SECONDS  of warming up (0.3)\n"
    "  -r RATE     operations a second at fixed times; latencies count from these times\n"
    "  -o RATE     connections opened a second\n"
    "  -p N        processes (1)\n"
    "  -P PID      the server, whose processes are accounted\n";

static void stop(void)
{
    fputs(usage, stderr);
    exit(2);
}

static double number_of(const char *text, double least)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= least))
        errx(2, "\"%s\" is no number that is possible here", text);
    return value;
}

static void parse_kind(struct load *load, const char *word)
{
    if (strcmp(word, "return") == 0)
        load->kind = LOAD_RETURN;
    else if (strcmp(word, "bulk") == 0)
        load->kind = LOAD_BULK;
    else if (strcmp(word, "message") == 0)
        load->kind = LOAD_MESSAGE;
    else if (strcmp(word, "idle") == 0 || strcmp(word, "hold") == 0)
        load->holds = true;
    else if (strcmp(word, "echo") != 0)
        stop();
    load->waits = strcmp(word, "hold") == 0;
}

static void parse_option(struct load *load, int option)
{
    switch (option) {
    case 'k':
        parse_kind(load, optarg);
        break;
    case 'c':
        load->connections = (unsigned)number_of(optarg, 1);
        break;
    case 's':
        load->size = (size_t)number_of(optarg, 1);
        break;
    case 'd':
        load->depth = (unsigned)number_of(optarg, 1);
        break;
    case 'n':
        load->operations = (uint64_t)number_of(optarg, 1);
        break;
    case 't':
        load->seconds = number_of(optarg, 0);
        break;
    case 'w':
        load->warm_up = number_of(optarg, 0);
        break;
    case 'r':
        load->rate = number_of(optarg, 0);
        break;
    case 'o':
        load->open_rate = number_of(optarg, 0);
        break;
    case 'p':
        load->processes = (unsigned)number_of(optarg, 1);
        break;
    case 'P':
        load->server = (pid_t)number_of(optarg, 1);
        break;
    default:
        stop();
    }
}

static void parse_address(struct load *load, char *text)
{
    char *colon = strrchr(text, ':');

    if (colon == NULL)
        stop();
    *colon = '\0';
    load->to.sin_family = AF_INET;
    load->to.sin_port = htons((uint16_t)number_of(colon + 1, 1));
    if (inet_pton(AF_INET, text, &load->to.sin_addr) != 1)
        errx(2, "\"%s\" is no IPv4 address", text);
}

static void parse(struct load *load, int argc, char **argv)
{
    int option;

    *load = (struct load) {
        .connections = 1, .processes = 1, .size = 64, .depth = 1, .seconds = 2, .warm_up = 0.3
    };
    while ((option = getopt(argc, argv, "k:c:s:d:n:t:w:r:o:p:P:")) != -1)
        parse_option(load, option);
    if (optind != argc - 1)
        stop();
    parse_address(load, argv[optind]);
    if (load->processes > LOAD_PROCESSES_MAX)
        errx(2, "at most %d processes", LOAD_PROCESSES_MAX);
    if (load->processes > load->connections)
        load->processes = load->connections;
}

static void start_processes(const struct load *load, struct load_shared *shared)
{
    pid_t parent = getpid();

    for (unsigned i = 0; i < load->processes; i++) {
        pid_t pid = fork();

        if (pid == -1)
            err(1, "fork");
        if (pid != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        load_client_run(load, shared, i);
        _exit(0);
    }
}

/* Ends the program, and so all processes, when a process has failed. */
static bool all_have_ended(unsigned *running, bool wait)
{
    int status;

    while (*running > 0 && waitpid(-1, &status, wait ? 0 : WNOHANG) > 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            exit(1);
        (*running)--;
    }
    return *running == 0;
}

static void await_open(const struct load *load, struct load_shared *shared, unsigned *running)
{
    for (unsigned i = 0; i < load->processes; i++)
        while (!atomic_load(&shared->processes[i].ready)) {
            all_have_ended(running, false);
            usleep(1000);
        }
}

static void sleep_for(double seconds)
{
    usleep((useconds_t)(seconds * 1e6));
}

static uint64_t total_of(const struct load *load, struct load_shared *shared)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < load->processes; i++)
        n += atomic_load(&shared->processes[i].operations);
    return n;
}

static uint64_t errors_of(const struct load *load, struct load_shared *shared)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < load->processes; i++)
        n += atomic_load(&shared->processes[i].errors);
    return n;
}

static void report_latencies(const struct load *load, const struct load_shared *shared)
{
    static struct histogram all;

    for (unsigned i = 0; i < load->processes; i++)
        histogram_merge(&all, &shared->processes[i].histogram);
    printf("p50_us %.1f\np90_us %.1f\np99_us %.1f\np999_us %.1f\nmax_us %.1f\n",
        (double)histogram_percentile(&all, 0.5) / 1e3,
        (double)histogram_percentile(&all, 0.9) / 1e3,
        (double)histogram_percentile(&all, 0.99) / 1e3,
        (double)histogram_percentile(&all, 0.999) / 1e3, (double)all.max / 1e3);
}

/* Descriptors opened by the workers under load: the maximum over the mean. In a server with child
 * processes, the children count as the workers. */
static void report_spread(const struct tree *before, const struct tree *after)
{
    unsigned first = after->n > 1, fullest = 0, sum = 0;

    for (unsigned i = first; i < after->n; i++) {
        unsigned n = after->descriptors[i];

        for (unsigned j = 0; j < before->n; j++)
            if (before->pids[j] == after->pids[i])
                n -= before->descriptors[j] < n ? before->descriptors[j] : n;
        sum += n;
        if (fullest < n)
            fullest = n;
    }
    if (sum > 0)
        printf("workers %u\nfullest %u\nspread %.3f\n", after->n - first, fullest,
            (double)fullest * (after->n - first) / sum);
}

static void report_memory(const struct load *load, const struct tree *before)
{
    struct tree after;

    tree_read(&after, load->server);
    printf("empty_bytes %llu\nfull_bytes %llu\nconnection_bytes %.1f\ngrowth_bytes %.1f\n",
        (unsigned long long)before->pss, (unsigned long long)after.pss,
        (double)after.pss / load->connections,
        ((double)after.pss - (double)before->pss) / load->connections);
    report_spread(before, &after);
}

/* The window between two looks at operations, clock and accounts. */
static void measure(const struct load *load, struct load_shared *shared, const struct tree *before)
{
    struct tree begin = { 0 }, end = { 0 };
    uint64_t begun_ns, n, spent_ns;

    sleep_for(load->warm_up);
    if (load->server != 0)
        tree_read_cpu(&begin, load->server);
    atomic_store(&shared->phase, LOAD_MEASURES);
    begun_ns = load_now();
    n = total_of(load, shared);
    sleep_for(load->seconds);
    if (load->server != 0)
        tree_read_cpu(&end, load->server);
    n = total_of(load, shared) - n;
    spent_ns = load_now() - begun_ns;
    if (load->server != 0 && load->kind == LOAD_ECHO) {
        struct tree full;

        tree_read(&full, load->server);
        report_spread(before, &full);
    }
    atomic_store(&shared->phase, LOAD_STOPS);
    printf("operations %llu\nseconds %.3f\nrate %.0f\n", (unsigned long long)n,
        (double)spent_ns / 1e9, (double)n * 1e9 / (double)spent_ns);
    if (load->server != 0 && n > 0)
        printf("cpu_us %.3f\ncpu_share %.3f\n",
            (double)(end.cpu_ns - begin.cpu_ns) / 1e3 / (double)n,
            (double)(end.cpu_ns - begin.cpu_ns) / (double)spent_ns);
}

static void run(const struct load *load, struct load_shared *shared)
{
    struct tree before = { 0 };
    unsigned running = load->processes;
    char byte;

    if (load->server != 0)
        tree_read(&before, load->server);
    start_processes(load, shared);
    await_open(load, shared, &running);
    if (load->holds) {
        if (load->server != 0)
            report_memory(load, &before);
        puts("held");
        fflush(stdout);
        while (load->waits && read(STDIN_FILENO, &byte, 1) > 0)
            continue;
        atomic_store(&shared->phase, LOAD_STOPS);
        all_have_ended(&running, true);
        return;
    }
    atomic_store(&shared->begun, load_now());
    atomic_store(&shared->phase, LOAD_WARMS_UP);
    if (load->operations == 0)
        measure(load, shared, &before);
    all_have_ended(&running, true);
    if (load->operations != 0)
        printf("operations %llu\n", (unsigned long long)total_of(load, shared));
    printf("errors %llu\n", (unsigned long long)errors_of(load, shared));
    report_latencies(load, shared);
}

int main(int argc, char **argv)
{
    struct load_shared *shared;
    struct load load;

    parse(&load, argc, argv);
    shared = mmap(NULL, sizeof(*shared) + load.processes * sizeof(shared->processes[0]),
        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        err(1, "memory");
    run(&load, shared);
    return 0;
}
