/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the status: some lines about the daemon, then tables of workers, times, listeners and
 * metrics. */
#include "cli/status_text.h"

#include "base/compiler.h"
#include "cli/reply_text.h"

#include <inttypes.h>
#include <string.h>

#define TEXT_MAX 1024

static bool is_there(struct json_value object, const char *name)
{
    return json_member(object, name).text != NULL;
}

/* Shows the causes of workers' deaths, in a line. */
static void show_deaths(struct json_value deaths, FILE *out)
{
    static const char *const causes[] = { "signal", "exit", "wait_failed", "channel_lost",
        "channel_rules", "start_failed", "start_timeout", "shutdown_timeout", "stop_timeout",
        "watchdog" };
    const char *before = "deaths of workers: ";

    for (size_t i = 0; i < countof(causes); i++) {
        int64_t n = json_integer(json_member(deaths, causes[i]), 0);

        if (n <= 0)
            continue;
        fprintf(out, "%s%" PRId64 " %s", before, n, causes[i]);
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', out);
}

static void show_head(struct json_value status, FILE *out)
{
    struct json_value reload = json_member(status, "reload"), none = { NULL, 0 };
    struct json_value upgrade = json_member(status, "upgrade");
    struct json_value left = json_member(status, "left_behind");
    char role[8] = "";

    reply_text(out, status,
        "forkbeard {version}, master process {pid}, {state}, up {uptime_ms|age}\n"
        "configuration {configuration}\n");
    if (json_is_true(json_member(reload, "ok")))
        reply_text(out, reload, "reloaded at {at}\n");
    else if (is_there(reload, "ok"))
        reply_text(out, reload, "reload failed at {at}: {error}\n");
    json_text(json_member(upgrade, "role"), role, sizeof(role));
    if (strcmp(role, "new") == 0)
        reply_text(out, upgrade, "new binary; the old one is process {other}\n");
    else if (is_there(upgrade, "role"))
        reply_text(out, upgrade,
            json_is_true(json_member(upgrade, "serves"))
                ? "old binary; the new one is process {other}\n"
                : "old binary; the new one is process {other}, which does not serve yet\n");
    reply_text_each(out, json_member(status, "pending"), "{command} waits: {waiting}\n");
    reply_text(out, json_member(status, "totals"),
        "connections: {active} active, {accepts} accepted, {handled} handled; {requests} "
        "requests\n");
    show_deaths(json_member(status, "deaths"), out);
    if (json_next(left, none).text == NULL)
        return;
    fputs("workers left behind, whose master was killed (end with kill -INT):", out);
    reply_text_each(out, left, " {pid}");
    fputc('\n', out);
}

static void show_worker(struct json_value generation, struct json_value worker, FILE *out)
{
    int64_t used = json_integer(json_member(worker, "worker_connections_used"), -1);
    char capacity[64] = "-";

    if (used >= 0)
        snprintf(capacity, sizeof(capacity), "%" PRId64 "/%" PRId64, used,
            json_integer(json_member(generation, "worker_connections"), 0));
    reply_text(out, generation, "{number:10}  {state:-8}  ");
    reply_text(out, worker, "{pid:8}  {slot:4}  {state:-9}  {connections:11}  ");
    fprintf(out, "%13s", capacity);
    reply_text(out, worker, "  {requests:12}  {uptime_ms|age:8}  {restarts:8}\n");
}

static void show_generations(struct json_value generations, FILE *out)
{
    struct json_value generation = { NULL, 0 }, worker = { NULL, 0 };

    fprintf(out, "\n%10s  %-8s  %8s  %4s  %-9s  %11s  %13s  %12s  %8s  %8s\n", "GENERATION",
        "STATE", "WORKER", "SLOT", "STATE", "CONNECTIONS", "CAPACITY", "REQUESTS", "UP",
        "RESTARTS");
    while ((generation = json_next(generations, generation)).text != NULL) {
        while ((worker = json_next(json_member(generation, "workers"), worker)).text != NULL)
            show_worker(generation, worker, out);
        if (is_there(generation, "resolver"))
            show_worker(generation, json_member(generation, "resolver"), out);
    }
}

/* Shows times of a worker, if any were measured; `what` is a template of `named`. */
static void show_times(struct json_value worker, struct json_value times, const char *what,
    struct json_value named, FILE *out)
{
    if (json_integer(json_member(times, "n"), 0) <= 0)
        return;
    reply_text(out, worker, "{pid:10}  ");
    reply_text(out, named, what);
    reply_text(out, times,
        "  {n:12}  {p50_us|below:8}  {p90_us|below:8}  {p99_us|below:8}  {p999_us|below:8}  "
        "{max_us|below:8}\n");
}

static void show_loop(struct json_value worker, FILE *out)
{
    struct json_value callbacks = json_member(worker, "callbacks"), one = { NULL, 0 };

    show_times(worker, json_member(worker, "turns"), "turns               ", one, out);
    while ((one = json_next(callbacks, one)).text != NULL)
        show_times(worker, one, "{protocol:-20}", one, out);
    if (json_integer(json_member(worker, "stalls"), 0) > 0)
        reply_text(out, worker, "{pid:10}  stalls                {stalls:12}\n");
}

/* Shows the times of each worker's turns, and of the callbacks of each protocol. */
static void show_loops(struct json_value generations, FILE *out)
{
    struct json_value generation = { NULL, 0 }, worker = { NULL, 0 };

    fprintf(out, "\n%10s  %-20s  %12s  %8s  %8s  %8s  %8s  %8s\n", "WORKER", "TIMES OF", "NUMBER",
        "50% <", "90% <", "99% <", "99.9% <", "ALL <");
    while ((generation = json_next(generations, generation)).text != NULL)
        while ((worker = json_next(json_member(generation, "workers"), worker)).text != NULL)
            show_loop(worker, out);
}

static void show_listeners(struct json_value listeners, FILE *out)
{
    int width = (int)strlen("LISTENER");
    struct json_value listener = { NULL, 0 };
    char text[TEXT_MAX];

    while ((listener = json_next(listeners, listener)).text != NULL)
        if (json_text(json_member(listener, "address"), text, sizeof(text)) &&
            (int)strlen(text) > width)
            width = (int)strlen(text);
    fprintf(out, "\n%-*s  %7s  %7s  %7s  %8s\n", width, "LISTENER", "SOCKETS", "BACKLOG", "QUEUE",
        "DROPS");
    snprintf(text, sizeof(text), "{address:-%d}  {sockets:7}  {backlog:7}  {queue:7}  {drops:8}\n",
        width);
    reply_text_each(out, listeners, text);
}

/* Writes "PROTOCOL.METRIC". */
static const char *metric_name(struct json_value metric, char out[2 * TEXT_MAX])
{
    char protocol[TEXT_MAX], name[TEXT_MAX];

    json_text(json_member(metric, "protocol"), protocol, sizeof(protocol));
    json_text(json_member(metric, "name"), name, sizeof(name));
    snprintf(out, 2 * TEXT_MAX, "%s.%s", protocol, name);
    return out;
}

/* Shows the metrics of the protocols, if any. */
static void show_metrics(struct json_value metrics, FILE *out)
{
    struct json_value metric = { NULL, 0 };
    int width = (int)strlen("METRIC");
    char name[2 * TEXT_MAX];

    while ((metric = json_next(metrics, metric)).text != NULL)
        if ((int)strlen(metric_name(metric, name)) > width)
            width = (int)strlen(name);
    if (json_next(metrics, metric).text == NULL)
        return;
    fprintf(out, "\n%-*s  %-7s  %20s\n", width, "METRIC", "KIND", "TOTAL");
    while ((metric = json_next(metrics, metric)).text != NULL) {
        fprintf(out, "%-*s", width, metric_name(metric, name));
        reply_text(out, metric, "  {kind:-7}  {total:20}\n");
    }
}

void status_text_write(struct json_value status, FILE *out)
{
    show_head(status, out);
    show_generations(json_member(status, "generations"), out);
    show_loops(json_member(status, "generations"), out);
    show_listeners(json_member(status, "listeners"), out);
    show_metrics(json_member(status, "metrics"), out);
}
