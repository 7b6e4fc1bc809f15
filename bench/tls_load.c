/* SPDX-License-Identifier: BSD-2-Clause */
/* tls_load [OPTION ...] PORT: makes load over TLS on a server at 127.0.0.1, in one process, and
 * reports figures as lines of a key and a value. An operation is 64 bytes echoed, over a connection
 * of its own or an open one. At a fixed rate latencies count from the time at which the operation
 * should have begun. */
#include "bench/histogram.h"
#include "bench/tls_client.h"
#include "bench/tree.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_SIZE 64
#define EVENTS_MAX 256
#define SILENCE_NS 30000000000ull
#define BULK_WARM_UP_NS 200000000ull

static const char usage[] =
    "usage: tls_load [OPTION ...] PORT\n"
    "  -k KIND     message (connect, echo, close), echo (on open connections), hold (connections\n"
    "              opened one after another, echo once and stay), down and up (bytes without end\n"
    "              from or to the server)\n"
    "  -v VERSION  1.3 (the default), 1.2 or plain\n"
    "  -c N        connections at once (1)\n"
    "  -n N        operations (1000), after\n"
    "  -w N        operations of warming up (20)\n"
    "  -m N        echoes of an operation (1)\n"
    "  -r RATE     operations a second at fixed times\n"
    "  -t SECONDS  of down and up (1)\n"
    "  -R          each connection offers the ticket of its predecessor\n"
    "  -W          waits for a line of input after the first operation of each connection\n"
    "  -P PID      the server, whose processes are accounted\n";

enum tls_load_kind { KIND_MESSAGE, KIND_ECHO, KIND_HOLD, KIND_DOWN, KIND_UP };

static const char *const kinds[] = { "message", "echo", "hold", "down", "up", NULL };

struct slot {
    struct tls_client client; /* first: epoll's data */
    uint64_t since_ns;        /* the operation's beginning */
    unsigned received;        /* bytes of the present echo */
    unsigned echoes;          /* before that */
    bool busy, sent;
};

struct tls_load {
    enum tls_load_kind kind;
    SSL_CTX *context; /* NULL: plain */
    struct sockaddr_in to;
    unsigned connections;
    unsigned echoes;              /* of an operation */
    uint64_t operations, warm_up; /* measured, and before */
    double rate, seconds;
    bool resumes, waits;
    bool opening; /* the first exchanges of an echo's connections are under way */
    pid_t server; /* 0: none */
    int epoll;
    struct slot *slots;
    uint64_t issued, done; /* operations, those of warming up included */
    uint64_t begun_ns, measured_ns, progress_ns, until_ns;
    uint64_t resumed, errors, bytes;
    struct tree before, after; /* the server's accounts */
    struct histogram histogram;
};

static uint64_t clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void begin_operation(struct tls_load *load, struct slot *slot, uint64_t since_ns);

/* The slot of the next operation without a rate: its predecessor's, or where connections are held,
 * the next. */
static void begin_next(struct tls_load *load, struct slot *slot)
{
    if (load->waits && load->issued == load->connections)
        return;
    if (load->rate > 0 || load->issued == load->warm_up + load->operations)
        return;
    if (load->kind == KIND_HOLD)
        slot = &load->slots[load->issued];
    begin_operation(load, slot, clock_now());
}

static void read_accounts(const struct tls_load *load, struct tree *tree)
{
    if (load->server != 0 && load->kind == KIND_HOLD)
        tree_read(tree, load->server);
    else if (load->server != 0)
        tree_read_cpu(tree, load->server);
}

static void begin_measuring(struct tls_load *load)
{
    read_accounts(load, &load->before);
    load->measured_ns = clock_now();
}

static void end_operation(struct tls_load *load, struct slot *slot)
{
    uint64_t now_ns = clock_now();

    slot->busy = false;
    load->progress_ns = now_ns;
    if (load->opening)
        return;
    if (load->kind == KIND_MESSAGE)
        tls_client_close(&slot->client);
    if (load->done++ >= load->warm_up) {
        load->resumed += slot->client.resumed;
        histogram_add(&load->histogram, now_ns > slot->since_ns ? now_ns - slot->since_ns : 0);
    }
    if (load->done == load->warm_up)
        begin_measuring(load);
    begin_next(load, slot);
}

/* Ends the program, except where connections come at a rate and failures are but counted. */
static void fail_operation(struct tls_load *load, struct slot *slot)
{
    if (load->kind != KIND_MESSAGE || load->rate <= 0)
        errx(1, "operation %llu has failed", (unsigned long long)load->done);
    load->errors++;
    slot->client.open = false;
    end_operation(load, slot);
}

/* Sends the message and takes its echo: 1 at the end of the echo, 0: none without an event; -1: the
 * connection has failed. */
static int move_message(struct slot *slot)
{
    static char bytes[MESSAGE_SIZE];
    long n = 0;

    if (!slot->sent) {
        memset(bytes, 'x', sizeof(bytes));
        n = tls_client_write(&slot->client, bytes, sizeof(bytes));
        slot->sent = n == MESSAGE_SIZE;
    }
    while (n >= 0 && slot->sent && slot->received < MESSAGE_SIZE) {
        n = tls_client_read(&slot->client, bytes, MESSAGE_SIZE - slot->received);
        if (n == 0)
            return 0;
        slot->received += n > 0 ? (unsigned)n : 0;
    }
    return n < 0 ? -1 : slot->received == MESSAGE_SIZE;
}

static void move_echo(struct tls_load *load, struct slot *slot)
{
    int result;

    while ((result = move_message(slot)) == 1 && ++slot->echoes < load->echoes) {
        slot->received = 0;
        slot->sent = false;
    }
    if (result == -1)
        fail_operation(load, slot);
    else if (result == 1)
        end_operation(load, slot);
}

/* Bytes of no operation: as many as go without waiting. */
static void move_bulk(struct tls_load *load, struct slot *slot)
{
    static char bytes[65536];
    long n = 1;

    while (n > 0 && clock_now() < load->until_ns) {
        n = load->kind == KIND_UP ? tls_client_write(&slot->client, bytes, sizeof(bytes))
                                  : tls_client_read(&slot->client, bytes, sizeof(bytes));
        load->bytes += n > 0 ? (uint64_t)n : 0;
    }
    if (n < 0)
        errx(1, "the connection has failed");
    load->progress_ns = clock_now();
}

static void advance(struct tls_load *load, struct slot *slot)
{
    if (!slot->client.open && !tls_client_shake(&slot->client)) {
        fail_operation(load, slot);
        return;
    }
    if (!slot->client.open)
        return;
    if (load->kind >= KIND_DOWN)
        move_bulk(load, slot);
    else if (slot->busy)
        move_echo(load, slot);
}

static void begin_operation(struct tls_load *load, struct slot *slot, uint64_t since_ns)
{
    load->issued++;
    slot->since_ns = since_ns;
    slot->received = slot->echoes = 0;
    slot->sent = false;
    slot->busy = true;
    if (slot->client.fd == -1) /* the first event tells that the socket is writable */
        tls_client_open(&slot->client, load->context, &load->to, load->epoll, load->resumes);
    else
        move_echo(load, slot);
}

static struct slot *free_slot(struct tls_load *load)
{
    struct slot *slot = &load->slots[load->issued % load->connections];

    if (load->kind == KIND_ECHO)
        return slot->busy ? NULL : slot;
    for (unsigned i = 0; i < load->connections; i++)
        if (!load->slots[i].busy)
            return &load->slots[i];
    return NULL;
}

/* Begins all due operations; returns the nanoseconds until the next. */
static uint64_t begin_due(struct tls_load *load)
{
    uint64_t now_ns = clock_now();

    while (load->issued < load->warm_up + load->operations) {
        uint64_t due_ns = load->begun_ns + (uint64_t)((double)load->issued * 1e9 / load->rate);
        struct slot *slot = due_ns > now_ns ? NULL : free_slot(load);

        if (due_ns > now_ns)
            return due_ns - now_ns;
        if (slot == NULL)
            break;
        begin_operation(load, slot, due_ns);
    }
    return SILENCE_NS;
}

static void take_events(struct tls_load *load, uint64_t ns)
{
    struct timespec time = { .tv_sec = (time_t)(ns / 1000000000ull),
        .tv_nsec = (long)(ns % 1000000000ull) };
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_pwait2(load->epoll, events, EVENTS_MAX, &time, NULL);

    if (n == -1 && errno != EINTR)
        err(1, "epoll_pwait2");
    for (int i = 0; i < n; i++) {
        struct slot *slot = events[i].data.ptr;

        if (slot->client.fd != -1)
            advance(load, slot);
    }
    if (clock_now() > load->progress_ns + SILENCE_NS)
        errx(1, "the server has not answered for %llu s", SILENCE_NS / 1000000000ull);
}

/* Until so many operations have ended. */
static void run_until(struct tls_load *load, uint64_t done)
{
    load->progress_ns = clock_now();
    while (load->done < done)
        take_events(load, load->rate > 0 ? begin_due(load) : SILENCE_NS);
}

static void begin_all(struct tls_load *load)
{
    unsigned n = load->kind == KIND_HOLD ? 1 : load->connections;

    for (unsigned i = 0; i < n; i++)
        begin_operation(load, &load->slots[i], clock_now());
}

/* A first exchange on each connection, one after another, which is no operation. */
static void open_all(struct tls_load *load)
{
    load->opening = true;
    for (unsigned i = 0; i < load->connections; i++) {
        begin_operation(load, &load->slots[i], clock_now());
        load->progress_ns = clock_now();
        while (load->slots[i].busy)
            take_events(load, SILENCE_NS);
    }
    load->opening = false;
    load->issued = 0;
}

/* Moves bytes until the time has come, whether events come or not. */
static void move_until(struct tls_load *load, uint64_t until_ns)
{
    load->progress_ns = clock_now();
    load->until_ns = until_ns;
    for (unsigned i = 0; i < load->connections; i++)
        advance(load, &load->slots[i]);
    while (load->progress_ns < until_ns)
        take_events(load, SILENCE_NS);
}

static void run_bulk(struct tls_load *load)
{
    for (unsigned i = 0; i < load->connections; i++)
        tls_client_open(&load->slots[i].client, load->context, &load->to, load->epoll, false);
    move_until(load, clock_now() + BULK_WARM_UP_NS);
    load->bytes = 0;
    begin_measuring(load);
    move_until(load, load->measured_ns + (uint64_t)(load->seconds * 1e9));
}

static void run(struct tls_load *load)
{
    if (load->kind >= KIND_DOWN) {
        run_bulk(load);
        return;
    }
    if (load->kind == KIND_ECHO)
        open_all(load);
    load->begun_ns = clock_now();
    if (load->warm_up == 0)
        begin_measuring(load);
    if (load->rate <= 0)
        begin_all(load);
    if (load->waits) {
        run_until(load, load->connections);
        puts("waits");
        fflush(stdout);
        if (getchar() == EOF)
            errx(1, "standard input has ended");
        load->waits = false;
        begin_all(load);
    }
    run_until(load, load->warm_up + load->operations);
}

static void report_cpu(const struct tls_load *load, const char *key, double divisor)
{
    double all = (double)(load->after.cpu_ns - load->before.cpu_ns);
    double keepers =
        (double)tree_cpu_of(&load->after, "keeper") - (double)tree_cpu_of(&load->before, "keeper");

    if (load->server != 0)
        printf("%s %.2f\nworker_%s %.2f\n", key, all / divisor, key, (all - keepers) / divisor);
}

static void report_operations(const struct tls_load *load, double spent_ns)
{
    const struct histogram *all = &load->histogram;

    printf("operations %llu\nerrors %llu\nresumed %llu\nrate %.0f\n",
        (unsigned long long)load->operations, (unsigned long long)load->errors,
        (unsigned long long)load->resumed, (double)load->operations * 1e9 / spent_ns);
    printf("p50_us %.1f\np99_us %.1f\np999_us %.1f\nmax_us %.1f\n",
        (double)histogram_percentile(all, 0.5) / 1e3, (double)histogram_percentile(all, 0.99) / 1e3,
        (double)histogram_percentile(all, 0.999) / 1e3, (double)all->max / 1e3);
    report_cpu(load, "cpu_us", 1e3 * (double)load->operations);
}

static void report(struct tls_load *load)
{
    double spent_ns = (double)(clock_now() - load->measured_ns);

    read_accounts(load, &load->after);
    if (load->kind == KIND_HOLD && load->server != 0)
        printf("session_bytes %.1f\n",
            ((double)load->after.pss - (double)load->before.pss) / (double)load->operations);
    else if (load->kind >= KIND_DOWN) {
        printf("mib_a_second %.0f\n", (double)load->bytes / 1048576 / (spent_ns / 1e9));
        report_cpu(load, "gib_ms", 1e6 * (double)load->bytes / 1073741824);
    } else
        report_operations(load, spent_ns);
}

static double number_in(const char *text, double least)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= least))
        errx(2, "\"%s\" is no number that is possible here", text);
    return value;
}

static void stop_for_usage(void)
{
    fputs(usage, stderr);
    exit(2);
}

static void parse_kind(struct tls_load *load, const char *word)
{
    unsigned i = 0;

    while (kinds[i] != NULL && strcmp(kinds[i], word) != 0)
        i++;
    if (kinds[i] == NULL)
        stop_for_usage();
    load->kind = (enum tls_load_kind)i;
}

static void parse_option(struct tls_load *load, int option, const char **version)
{
    switch (option) {
    case 'k':
        parse_kind(load, optarg);
        break;
    case 'v':
        *version = optarg;
        break;
    case 'c':
        load->connections = (unsigned)number_in(optarg, 1);
        break;
    case 'n':
        load->operations = (uint64_t)number_in(optarg, 1);
        break;
    case 'w':
        load->warm_up = (uint64_t)number_in(optarg, 0);
        break;
    case 'm':
        load->echoes = (unsigned)number_in(optarg, 1);
        break;
    case 'r':
        load->rate = number_in(optarg, 0);
        break;
    case 't':
        load->seconds = number_in(optarg, 0);
        break;
    case 'R':
        load->resumes = true;
        break;
    case 'W':
        load->waits = true;
        break;
    case 'P':
        load->server = (pid_t)number_in(optarg, 1);
        break;
    default:
        stop_for_usage();
    }
}

static void parse(struct tls_load *load, int argc, char **argv)
{
    const char *version = "1.3";
    int option;

    load->connections = load->echoes = 1;
    load->operations = 1000;
    load->warm_up = 20;
    load->seconds = 1;
    while ((option = getopt(argc, argv, "k:v:c:n:w:m:r:t:RWP:")) != -1)
        parse_option(load, option, &version);
    if (optind != argc - 1)
        stop_for_usage();
    load->context = tls_client_context(version);
    load->to.sin_family = AF_INET;
    load->to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    load->to.sin_port = htons((uint16_t)number_in(argv[optind], 1));
    if (load->kind == KIND_HOLD)
        load->connections = (unsigned)(load->warm_up + load->operations);
    else if (load->connections > load->warm_up + load->operations)
        errx(2, "there are more connections than operations");
}

int main(int argc, char **argv)
{
    static struct tls_load load;

    parse(&load, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.slots = calloc(load.connections, sizeof(*load.slots));
    if (load.epoll == -1 || load.slots == NULL)
        err(1, "epoll, memory");
    for (unsigned i = 0; i < load.connections; i++)
        load.slots[i].client.fd = -1;
    run(&load);
    report(&load);
    return 0;
}
