/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows replies to people by templates (reply_template.h). */
#include "cli/reply_text.h"

#include "base/compiler.h"
#include "cli/reply_template.h"
#include "cli/reply_traffic.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Status */

/* Shows the causes of workers' deaths, in a line. */
static void show_deaths(struct json_value deaths, FILE *out)
{
    static const char *const causes[] = { "signal", "exit", "wait_failed", "channel_lost",
        "channel_rules", "start_failed", "start_timeout", "shutdown_timeout", "stop_timeout",
        "watchdog" };

    reply_write_counts(out, deaths, causes, countof(causes), "deaths of workers: ");
}

/* Shows what is wrong, each in a line with what to do; nothing if all is well. */
static void show_problems(struct json_value status, FILE *out)
{
    struct json_value list = json_member(status, "problems"), none = { NULL, 0 };

    if (json_next(list, none).text == NULL)
        return;
    fputs("PROBLEMS\n", out);
    reply_write_each(out, list, "  {level}: {problem}: {advice}\n");
    if (json_integer(json_member(status, "problems_left_out"), 0) > 0)
        reply_write(out, status, "  {problems_left_out} problems more are not shown\n");
    putc('\n', out);
}

static void show_log_level(struct json_value level, FILE *out)
{
    reply_write(out, level,
        reply_has(level, "until")
            ? "log level: {level}, set until {until} ({left_ms|age} left)\n"
            : "log level: {level}, set until taken back (forkbeard log default)\n");
}

static void show_head(struct json_value status, FILE *out)
{
    struct json_value reload = json_member(status, "reload"), none = { NULL, 0 };
    struct json_value upgrade = json_member(status, "upgrade");
    struct json_value left = json_member(status, "left_behind");
    char role[8] = "";
    bool is_new;

    reply_write(out, status,
        "forkbeard {version}, master process {pid}, {state}, up {uptime_ms|age}\n"
        "configuration {configuration}\n");
    if (json_is_true(json_member(reload, "ok")))
        reply_write(out, reload, "reloaded at {at}\n");
    else if (reply_has(reload, "ok"))
        reply_write(out, reload, "reload failed at {at}: {error}\n");
    if (json_integer(json_member(status, "reloads"), 0) > 0)
        reply_write(out, status, "reloads since the start: {reloads}, {reloads_failed} failed\n");
    if (json_integer(json_member(status, "log_lines_lost"), 0) > 0)
        reply_write(out, status, "log lines lost: {log_lines_lost}\n");
    if (reply_has(json_member(status, "log_level"), "level"))
        show_log_level(json_member(status, "log_level"), out);
    json_text(json_member(upgrade, "role"), role, sizeof(role));
    is_new = strcmp(role, "new") == 0;
    if (reply_has(upgrade, "role"))
        fprintf(out, "%s binary; the %s one is process %" PRId64 "%s\n", is_new ? "new" : "old",
            is_new ? "old" : "new", json_integer(json_member(upgrade, "other"), 0),
            is_new || json_is_true(json_member(upgrade, "serves")) ? ""
                                                                   : ", which does not serve yet");
    reply_write_each(out, json_member(status, "pending"), "{command} waits: {waiting}\n");
    reply_write(out, json_member(status, "totals"),
        "connections: {active} active, {accepts} accepted, {handled} handled; {requests} "
        "requests\n");
    show_deaths(json_member(status, "deaths"), out);
    if (json_next(left, none).text == NULL)
        return;
    fputs("workers left behind, whose master was killed (end with kill -INT):", out);
    reply_write_each(out, left, " {pid}");
    fputc('\n', out);
}

static void show_worker(struct json_value generation, struct json_value worker, FILE *out)
{
    int64_t used = json_integer(json_member(worker, "worker_connections_used"), -1);
    char capacity[64] = "-", state[REPLY_TEXT_MAX] = "-", age[REPLY_TEXT_MAX];
    int64_t stuck = json_integer(json_member(worker, "stuck_ms"), -1);
    int64_t drain = json_integer(json_member(worker, "drain_ms"), -1);

    json_text(json_member(worker, "state"), state, sizeof(state));
    if (stuck >= 0 || drain >= 0) {
        reply_format_age(stuck >= 0 ? stuck : drain, age);
        snprintf(state + strlen(state), sizeof(state) - strlen(state), " %.32s", age);
    }
    if (used >= 0)
        snprintf(capacity, sizeof(capacity), "%" PRId64 "/%" PRId64, used,
            json_integer(json_member(generation, "worker_connections"), 0));
    reply_write(out, generation, "{number:10}  {state:-8}  ");
    reply_write(out, worker, "{pid:8}  {slot:4}  ");
    fprintf(out, "%-16s  ", state);
    reply_write(out, worker, "{connections:11}  ");
    fprintf(out, "%13s", capacity);
    reply_write(out, worker,
        "  {requests:12}  {uptime_ms|age:8}  {restarts:8}  {cpu_ms|age:8}  {memory|size:8}"
        "  {descriptors:11}/{descriptors_max}\n");
}

static void show_generations(struct json_value generations, FILE *out)
{
    struct json_value generation = { NULL, 0 }, worker = { NULL, 0 }, keeper = { NULL, 0 };

    fprintf(out, "\n%10s  %-8s  %8s  %4s  %-16s  %11s  %13s  %12s  %8s  %8s  %8s  %8s  %11s\n",
        "GENERATION", "STATE", "WORKER", "SLOT", "STATE", "CONNECTIONS", "CAPACITY", "REQUESTS",
        "UP", "RESTARTS", "CPU", "MEMORY", "DESCRIPTORS");
    while ((generation = json_next(generations, generation)).text != NULL) {
        while ((worker = json_next(json_member(generation, "workers"), worker)).text != NULL)
            show_worker(generation, worker, out);
        while ((keeper = json_next(json_member(generation, "keepers"), keeper)).text != NULL)
            show_worker(generation, keeper, out);
        if (reply_has(generation, "resolver"))
            show_worker(generation, json_member(generation, "resolver"), out);
    }
}

/* Shows times of a worker, if any were measured; `what` is a template of `named`. */
static void show_times(struct json_value worker, struct json_value times, const char *what,
    struct json_value named, FILE *out)
{
    if (json_integer(json_member(times, "n"), 0) <= 0)
        return;
    reply_write(out, worker, "{pid:10}  ");
    reply_write(out, named, what);
    reply_write(out, times,
        "  {n:12}  {p50_us|below:8}  {p90_us|below:8}  {p99_us|below:8}  {p999_us|below:8}  "
        "{max_us|below:8}\n");
}

/* Shows the times of workers' turns, and of protocols' callbacks. */
static void show_loops(struct json_value generations, FILE *out)
{
    struct json_value generation = { NULL, 0 }, worker = { NULL, 0 }, one = { NULL, 0 };

    fprintf(out, "\n%10s  %-20s  %12s  %8s  %8s  %8s  %8s  %8s\n", "WORKER", "TIMES OF", "NUMBER",
        "50% <", "90% <", "99% <", "99.9% <", "ALL <");
    while ((generation = json_next(generations, generation)).text != NULL)
        while ((worker = json_next(json_member(generation, "workers"), worker)).text != NULL) {
            struct json_value callbacks = json_member(worker, "callbacks");

            show_times(worker, json_member(worker, "turns"), "turns               ", one, out);
            while ((one = json_next(callbacks, one)).text != NULL)
                show_times(worker, one, "{protocol:-20}", one, out);
            if (json_integer(json_member(worker, "stalls"), 0) > 0)
                reply_write(out, worker, "{pid:10}  stalls                {stalls:12}\n");
        }
}

static void show_listeners(struct json_value listeners, FILE *out)
{
    int width = reply_column_width(listeners, "address", "LISTENER");
    char text[REPLY_TEXT_MAX];

    fprintf(out, "\n%-*s  %7s  %7s  %7s  %8s\n", width, "LISTENER", "SOCKETS", "BACKLOG", "QUEUE",
        "DROPS");
    snprintf(text, sizeof(text), "{address:-%d}  {sockets:7}  {backlog:7}  {queue:7}  {drops:8}\n",
        width);
    reply_write_each(out, listeners, text);
}

/* Writes "PROTOCOL.METRIC". */
static const char *metric_name(struct json_value metric, char out[2 * REPLY_TEXT_MAX])
{
    char protocol[REPLY_TEXT_MAX], name[REPLY_TEXT_MAX];

    json_text(json_member(metric, "protocol"), protocol, sizeof(protocol));
    json_text(json_member(metric, "name"), name, sizeof(name));
    snprintf(out, 2 * REPLY_TEXT_MAX, "%s.%s", protocol, name);
    return out;
}

/* Shows the metrics of the protocols, if any. */
static void show_metrics(struct json_value metrics, FILE *out)
{
    struct json_value metric = { NULL, 0 };
    int width = (int)strlen("METRIC");
    char name[2 * REPLY_TEXT_MAX];

    while ((metric = json_next(metrics, metric)).text != NULL)
        if ((int)strlen(metric_name(metric, name)) > width)
            width = (int)strlen(name);
    if (json_next(metrics, metric).text == NULL)
        return;
    fprintf(out, "\n%-*s  %-7s  %20s\n", width, "METRIC", "KIND", "TOTAL");
    while ((metric = json_next(metrics, metric)).text != NULL) {
        fprintf(out, "%-*s", width, metric_name(metric, name));
        reply_write(out, metric, "  {kind:-7}  {total:20}\n");
    }
}

void reply_text_status(struct json_value status, FILE *out)
{
    show_problems(status, out);
    show_head(status, out);
    show_generations(json_member(status, "generations"), out);
    show_loops(json_member(status, "generations"), out);
    show_listeners(json_member(status, "listeners"), out);
    reply_text_servers(json_member(status, "servers"), out);
    reply_text_upstream_servers(json_member(status, "upstream_servers"), out);
    show_metrics(json_member(status, "metrics"), out);
}

int reply_text_level(struct json_value status)
{
    struct json_value list = json_member(status, "problems"), at = { NULL, 0 };
    char level[16];
    int worst = 0;

    while ((at = json_next(list, at)).text != NULL) {
        bool critical = json_text(json_member(at, "level"), level, sizeof(level)) &&
                        strcmp(level, "critical") == 0;

        worst = critical ? 2 : worst == 0 ? 1 : worst;
    }
    return worst;
}

void reply_text_check(struct json_value status, FILE *out)
{
    static const char *const names[] = { "OK", "WARNING", "CRITICAL" };
    struct json_value list = json_member(status, "problems"), at = { NULL, 0 };
    int level = reply_text_level(status), n = 0;

    while ((at = json_next(list, at)).text != NULL)
        n++;
    fprintf(out, "%s: %d problem%s", names[level], n, n == 1 ? "" : "s");
    reply_write(out, json_member(status, "totals"), ", {active} connections\n");
    reply_write_each(out, list, "{level}: {problem}: {advice}\n");
}

/* Upstreams */

static const char *const troubles_of_sessions[] = { "resets", "timeouts", "refusals", "slow" };

static void show_server(struct json_value server, FILE *out)
{
    char name[REPLY_TEXT_MAX], address[REPLY_TEXT_MAX], both[2 * REPLY_TEXT_MAX];
    int64_t troubles = 0;

    if (!json_text(json_member(server, "server"), name, sizeof(name)))
        strcpy(name, "-");
    if (!json_text(json_member(server, "address"), address, sizeof(address)) ||
        strcmp(name, address) == 0)
        snprintf(both, sizeof(both), "%s", name);
    else
        snprintf(both, sizeof(both), "%s %s", name, address);
    fprintf(out, "  %-30s", both);
    reply_write(
        out, server, " {state:-10} {set:-5} {weight:6} {connections:11} {sessions:9} {failures:8}");
    fputs(json_is_true(json_member(server, "backup")) ? " backup\n" : "\n", out);
    for (size_t i = 0; i < countof(troubles_of_sessions); i++)
        troubles |= json_integer(json_member(server, troubles_of_sessions[i]), 0);
    if (troubles != 0)
        reply_write(out, server,
            "    resets: {resets}, connect time-outs: {timeouts}, refusals: {refusals}, slow first "
            "bytes: {slow}\n");
}

/* Shows a server's name: "a.test:80: 2 addresses, 3 s old". */
static void show_name(struct json_value name, FILE *out)
{
    int64_t n = json_integer(json_member(name, "addresses"), 0);
    int64_t age = json_integer(json_member(name, "age_ms"), -1);
    int64_t failed = json_integer(json_member(name, "failed_ms"), -1);

    reply_write(out, name, "  {server}: ");
    if (age < 0)
        fputs("no answer yet", out);
    else
        fprintf(out, "%" PRId64 " %s, %" PRId64 " s old", n, n == 1 ? "address" : "addresses",
            age / 1000);
    if (failed >= 0) {
        fprintf(out, "; for %" PRId64 " s ", failed / 1000);
        reply_write(out, name, "{error}");
    }
    putc('\n', out);
}

static void show_upstream(struct json_value upstream, FILE *out)
{
    struct json_value servers = json_member(upstream, "servers"), at = { NULL, 0 };
    struct json_value names = json_member(upstream, "names");
    char zone[REPLY_TEXT_MAX];

    reply_write(out, upstream,
        json_text(json_member(upstream, "zone"), zone, sizeof(zone))
            ? "upstream {name}, {balancer}, zone {zone}\n"
            : "upstream {name}, {balancer}, without a zone: each worker has a state of its own\n");
    fprintf(out, "  %-30s %-10s %-5s %6s %11s %9s %8s\n", "server", "state", "set", "weight",
        "connections", "sessions", "failures");
    while ((at = json_next(servers, at)).text != NULL)
        show_server(at, out);
    while ((at = json_next(names, at)).text != NULL)
        show_name(at, out);
}

void reply_text_upstreams(struct json_value reply, FILE *out)
{
    struct json_value upstreams = json_member(reply, "upstreams"), at = { NULL, 0 };
    bool first = true;

    while ((at = json_next(upstreams, at)).text != NULL) {
        if (!first)
            putc('\n', out);
        show_upstream(at, out);
        first = false;
    }
    if (json_integer(json_member(reply, "left_out"), 0) > 0)
        reply_write(out, reply, "\n{left_out} servers more are not shown\n");
}

/* Certificates */

void reply_text_certificates(struct json_value reply, FILE *out)
{
    struct json_value list = json_member(reply, "certificates"), at = { NULL, 0 };

    fprintf(out, "%-23s  %-23s  %s\n", "VALID UNTIL", "REPLACED", "CERTIFICATE (NAMES)");
    while ((at = json_next(list, at)).text != NULL) {
        reply_write(out, at, "{not_after|date:-23}  {swapped|date:-23}  {certificate} ({names})\n");
        if (json_integer(json_member(at, "refused"), 0) > 0)
            reply_write(out, at, "  refused at {refused|date}: {error}\n");
    }
    if (json_integer(json_member(reply, "left_out"), 0) > 0)
        reply_write(out, reply, "\n{left_out} certificates more are not shown\n");
}

/* Events */

void reply_text_events(struct json_value reply, FILE *out)
{
    if (json_integer(json_member(reply, "lost"), 0) > 0)
        reply_write(out, reply, "{lost} events before these are not kept\n");
    reply_write_each(out, json_member(reply, "events"), "{number:6}  {time}  {kind:-20}  {text}\n");
}

/* Log */

void reply_text_log(struct json_value reply, FILE *out)
{
    struct json_value level = json_member(reply, "log_level");

    if (reply_has(level, "level"))
        show_log_level(level, out);
    else
        fputs("log level: as configured\n", out);
    if (reply_has(reply, "note"))
        reply_write(out, reply, "{note}\n");
}
