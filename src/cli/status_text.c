/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the status: some lines about the daemon, then a table of workers and a table of
 * listeners. A member that the reply lacks is printed as "-" and is never an error. */
#include "cli/status_text.h"

#include "base/compiler.h"

#include <inttypes.h>
#include <string.h>

#define TEXT_MAX 1024
#define PLACE_MAX 32 /* bytes of a number or a state */

static int64_t member_number(struct json_value object, const char *name)
{
    return json_integer(json_member(object, name), 0);
}

static const char *member_text(struct json_value object, const char *name, char out[TEXT_MAX])
{
    if (!json_text(json_member(object, name), out, TEXT_MAX))
        strcpy(out, "-");
    return out;
}

/* Formats a number; "-" where there is none. */
static const char *format_count(struct json_value object, const char *name, char out[PLACE_MAX])
{
    int64_t n = json_integer(json_member(object, name), -1);

    if (n < 0)
        strcpy(out, "-");
    else
        snprintf(out, PLACE_MAX, "%" PRId64, n % 1000000000000);
    return out;
}

/* Formats a time in its two largest units. */
static const char *format_duration(int64_t ms, char out[PLACE_MAX])
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = { { "d", 86400 }, { "h", 3600 }, { "m", 60 }, { "s", 1 } };
    int64_t s = ms / 1000 % 100000000000;
    size_t i = 0;

    while (i < countof(units) - 1 && s < units[i].seconds)
        i++;
    if (i == countof(units) - 1)
        snprintf(out, PLACE_MAX, "%" PRId64 "s", s);
    else
        snprintf(out, PLACE_MAX, "%" PRId64 "%s %" PRId64 "%s", s / units[i].seconds, units[i].name,
            s % units[i].seconds / units[i + 1].seconds, units[i + 1].name);
    return out;
}

static void show_reload(struct json_value reload, FILE *out)
{
    char at[TEXT_MAX], error[TEXT_MAX];

    if (json_member(reload, "ok").text == NULL)
        return;
    if (json_is_true(json_member(reload, "ok")))
        fprintf(out, "reloaded at %s\n", member_text(reload, "at", at));
    else
        fprintf(out, "reload failed at %s: %s\n", member_text(reload, "at", at),
            member_text(reload, "error", error));
}

static void show_upgrade(struct json_value upgrade, FILE *out)
{
    char role[TEXT_MAX];

    if (json_member(upgrade, "role").text == NULL)
        return;
    if (strcmp(member_text(upgrade, "role", role), "new") == 0)
        fprintf(out, "new binary; the old one is process %" PRId64 "\n",
            member_number(upgrade, "other"));
    else
        fprintf(out, "old binary; the new one is process %" PRId64 "%s\n",
            member_number(upgrade, "other"),
            json_is_true(json_member(upgrade, "serves")) ? "" : ", which does not serve yet");
}

/* Shows the commands that wait, each with why. */
static void show_pending(struct json_value pending, FILE *out)
{
    struct json_value one = { NULL, 0 };
    char command[TEXT_MAX], why[TEXT_MAX];

    while ((one = json_next(pending, one)).text != NULL)
        fprintf(out, "%s waits: %s\n", member_text(one, "command", command),
            member_text(one, "waiting", why));
}

/* Shows what workers have died of, in a line where any has. */
static void show_deaths(struct json_value deaths, FILE *out)
{
    static const char *const causes[] = { "signal", "exit", "wait_failed", "channel_lost",
        "channel_rules", "start_failed", "start_timeout", "shutdown_timeout", "stop_timeout",
        "watchdog" };
    const char *before = "deaths of workers: ";

    for (size_t i = 0; i < countof(causes); i++) {
        int64_t n = member_number(deaths, causes[i]);

        if (n <= 0)
            continue;
        fprintf(out, "%s%" PRId64 " %s", before, n, causes[i]);
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', out);
}

/* Shows workers that a master process has left behind, if there are any. */
static void show_left(struct json_value workers, FILE *out)
{
    struct json_value worker = { NULL, 0 };
    const char *before = "workers left behind, whose master was killed (end with kill -INT):";

    while ((worker = json_next(workers, worker)).text != NULL) {
        fprintf(out, "%s %" PRId64, before, member_number(worker, "pid"));
        before = "";
    }
    if (before[0] == '\0')
        fputc('\n', out);
}

static void show_head(struct json_value status, FILE *out)
{
    struct json_value totals = json_member(status, "totals");
    char version[TEXT_MAX], state[TEXT_MAX], conf[TEXT_MAX], up[PLACE_MAX];

    fprintf(out, "forkbeard %s, master process %" PRId64 ", %s, up %s\n",
        member_text(status, "version", version), member_number(status, "pid"),
        member_text(status, "state", state),
        format_duration(member_number(status, "uptime_ms"), up));
    fprintf(out, "configuration %s\n", member_text(status, "configuration", conf));
    show_reload(json_member(status, "reload"), out);
    show_upgrade(json_member(status, "upgrade"), out);
    show_pending(json_member(status, "pending"), out);
    fprintf(out,
        "connections: %" PRId64 " active, %" PRId64 " accepted, %" PRId64 " handled; %" PRId64
        " requests\n",
        member_number(totals, "active"), member_number(totals, "accepts"),
        member_number(totals, "handled"), member_number(totals, "requests"));
    show_deaths(json_member(status, "deaths"), out);
    show_left(json_member(status, "left_behind"), out);
}

/* Formats how many of its worker_connections a worker has in use. */
static const char *format_capacity(
    struct json_value generation, struct json_value worker, char out[PLACE_MAX])
{
    int64_t used = json_integer(json_member(worker, "worker_connections_used"), -1);

    if (used < 0)
        return strcpy(out, "-");
    snprintf(out, PLACE_MAX, "%" PRId64 "/%" PRId64, used % 10000000000,
        member_number(generation, "worker_connections") % 10000000000);
    return out;
}

static void show_worker(struct json_value generation, struct json_value worker, FILE *out)
{
    char of[TEXT_MAX], state[TEXT_MAX], places[6][PLACE_MAX], up[PLACE_MAX] = "-";
    int64_t ms = json_integer(json_member(worker, "uptime_ms"), -1);

    if (ms >= 0)
        format_duration(ms, up);
    fprintf(out, "%10" PRId64 "  %-8s  %8s  %4s  %-9s  %11s  %13s  %12s  %8s  %8s\n",
        member_number(generation, "number"), member_text(generation, "state", of),
        format_count(worker, "pid", places[0]), format_count(worker, "slot", places[1]),
        member_text(worker, "state", state), format_count(worker, "connections", places[2]),
        format_capacity(generation, worker, places[5]), format_count(worker, "requests", places[3]),
        up, format_count(worker, "restarts", places[4]));
}

static void show_generations(struct json_value generations, FILE *out)
{
    struct json_value generation = { NULL, 0 };

    fprintf(out, "\n%10s  %-8s  %8s  %4s  %-9s  %11s  %13s  %12s  %8s  %8s\n", "GENERATION",
        "STATE", "WORKER", "SLOT", "STATE", "CONNECTIONS", "CAPACITY", "REQUESTS", "UP",
        "RESTARTS");
    while ((generation = json_next(generations, generation)).text != NULL) {
        struct json_value workers = json_member(generation, "workers");
        struct json_value worker = { NULL, 0 };

        while ((worker = json_next(workers, worker)).text != NULL)
            show_worker(generation, worker, out);
        if (json_member(generation, "resolver").text != NULL)
            show_worker(generation, json_member(generation, "resolver"), out);
    }
}

/* Formats a time below which a share of the times were, in microseconds to seconds. */
static const char *format_below(struct json_value times, const char *name, char out[PLACE_MAX])
{
    int64_t us = json_integer(json_member(times, name), 0);

    if (us <= 0)
        strcpy(out, "-");
    else if (us < 1024)
        snprintf(out, PLACE_MAX, "%" PRId64 "us", us);
    else if (us < 1024 * 1024)
        snprintf(out, PLACE_MAX, "%.3gms", (double)us / 1000);
    else
        snprintf(out, PLACE_MAX, "%.3gs", (double)us / 1000000);
    return out;
}

static void show_times(
    struct json_value worker, const char *what, struct json_value times, FILE *out)
{
    char places[7][PLACE_MAX];

    if (json_integer(json_member(times, "n"), 0) <= 0)
        return;
    fprintf(out, "%10s  %-20s  %12s  %8s  %8s  %8s  %8s  %8s\n",
        format_count(worker, "pid", places[0]), what, format_count(times, "n", places[1]),
        format_below(times, "p50_us", places[2]), format_below(times, "p90_us", places[3]),
        format_below(times, "p99_us", places[4]), format_below(times, "p999_us", places[5]),
        format_below(times, "max_us", places[6]));
}

static void show_loop(struct json_value worker, FILE *out)
{
    struct json_value callbacks = json_member(worker, "callbacks"), one = { NULL, 0 };
    char protocol[TEXT_MAX], pid[PLACE_MAX], n[PLACE_MAX];

    show_times(worker, "turns", json_member(worker, "turns"), out);
    while ((one = json_next(callbacks, one)).text != NULL)
        show_times(worker, member_text(one, "protocol", protocol), one, out);
    if (member_number(worker, "stalls") > 0)
        fprintf(out, "%10s  %-20s  %12s\n", format_count(worker, "pid", pid), "stalls",
            format_count(worker, "stalls", n));
}

/* Shows how long the turns of each worker's loop took, and the callbacks of each protocol. */
static void show_loops(struct json_value generations, FILE *out)
{
    struct json_value generation = { NULL, 0 };

    fprintf(out, "\n%10s  %-20s  %12s  %8s  %8s  %8s  %8s  %8s\n", "WORKER", "TIMES OF", "NUMBER",
        "50% <", "90% <", "99% <", "99.9% <", "ALL <");
    while ((generation = json_next(generations, generation)).text != NULL) {
        struct json_value workers = json_member(generation, "workers");
        struct json_value worker = { NULL, 0 };

        while ((worker = json_next(workers, worker)).text != NULL)
            show_loop(worker, out);
    }
}

static int address_width(struct json_value listeners)
{
    struct json_value listener = { NULL, 0 };
    size_t width = strlen("LISTENER");
    char address[TEXT_MAX];

    while ((listener = json_next(listeners, listener)).text != NULL)
        if (strlen(member_text(listener, "address", address)) > width)
            width = strlen(address);
    return (int)width;
}

static void show_listeners(struct json_value listeners, FILE *out)
{
    struct json_value listener = { NULL, 0 };
    int width = address_width(listeners);
    char address[TEXT_MAX], places[4][PLACE_MAX];

    fprintf(out, "\n%-*s  %7s  %7s  %7s  %8s\n", width, "LISTENER", "SOCKETS", "BACKLOG", "QUEUE",
        "DROPS");
    while ((listener = json_next(listeners, listener)).text != NULL)
        fprintf(out, "%-*s  %7s  %7s  %7s  %8s\n", width, member_text(listener, "address", address),
            format_count(listener, "sockets", places[0]),
            format_count(listener, "backlog", places[1]),
            format_count(listener, "queue", places[2]), format_count(listener, "drops", places[3]));
}

/* Writes the name of a metric behind that of its protocol. */
static const char *metric_name(struct json_value metric, char out[2 * TEXT_MAX])
{
    char protocol[TEXT_MAX], name[TEXT_MAX];

    snprintf(out, 2 * TEXT_MAX, "%s.%s", member_text(metric, "protocol", protocol),
        member_text(metric, "name", name));
    return out;
}

/* Shows the metrics of the protocols, if they have any. */
static void show_metrics(struct json_value metrics, FILE *out)
{
    struct json_value metric = { NULL, 0 };
    char name[2 * TEXT_MAX], kind[TEXT_MAX];
    size_t width = strlen("METRIC");

    while ((metric = json_next(metrics, metric)).text != NULL)
        if (strlen(metric_name(metric, name)) > width)
            width = strlen(name);
    if (json_next(metrics, metric).text == NULL)
        return;
    fprintf(out, "\n%-*s  %-7s  %20s\n", (int)width, "METRIC", "KIND", "TOTAL");
    while ((metric = json_next(metrics, metric)).text != NULL)
        fprintf(out, "%-*s  %-7s  %20" PRId64 "\n", (int)width, metric_name(metric, name),
            member_text(metric, "kind", kind), member_number(metric, "total"));
}

void status_text_write(struct json_value status, FILE *out)
{
    show_head(status, out);
    show_generations(json_member(status, "generations"), out);
    show_loops(json_member(status, "generations"), out);
    show_listeners(json_member(status, "listeners"), out);
    show_metrics(json_member(status, "metrics"), out);
}
