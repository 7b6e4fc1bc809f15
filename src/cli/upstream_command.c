/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the daemon for its upstreams, or to change the state of a server, and prints the reply. */
#include "cli/upstream_command.h"

#include "base/compiler.h"
#include "cli/command.h"
#include "cli/reply_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 256

static const char *const troubles_of_sessions[] = { "resets", "timeouts", "refusals", "slow" };

static void show_server(struct json_value server, FILE *out)
{
    char name[TEXT_MAX] = "-", address[TEXT_MAX], both[2 * TEXT_MAX];
    int64_t troubles = 0;

    if (!json_text(json_member(server, "server"), name, sizeof(name)))
        strcpy(name, "-");
    if (!json_text(json_member(server, "address"), address, sizeof(address)) ||
        strcmp(name, address) == 0)
        snprintf(both, sizeof(both), "%s", name);
    else
        snprintf(both, sizeof(both), "%s %s", name, address);
    fprintf(out, "  %-30s", both);
    reply_text(
        out, server, " {state:-10} {set:-5} {weight:6} {connections:11} {sessions:9} {failures:8}");
    fputs(json_is_true(json_member(server, "backup")) ? " backup\n" : "\n", out);
    for (size_t i = 0; i < countof(troubles_of_sessions); i++)
        troubles |= json_integer(json_member(server, troubles_of_sessions[i]), 0);
    if (troubles != 0)
        reply_text(out, server,
            "    resets: {resets}, connect time-outs: {timeouts}, refusals: {refusals}, slow first "
            "bytes: {slow}\n");
}

/* Shows a server's name: "a.test:80: 2 addresses, 3 s old". */
static void show_name(struct json_value name, FILE *out)
{
    int64_t n = json_integer(json_member(name, "addresses"), 0);
    int64_t age = json_integer(json_member(name, "age_ms"), -1);
    int64_t failed = json_integer(json_member(name, "failed_ms"), -1);

    reply_text(out, name, "  {server}: ");
    if (age < 0)
        fputs("no answer yet", out);
    else
        fprintf(out, "%" PRId64 " %s, %" PRId64 " s old", n, n == 1 ? "address" : "addresses",
            age / 1000);
    if (failed >= 0) {
        fprintf(out, "; for %" PRId64 " s ", failed / 1000);
        reply_text(out, name, "{error}");
    }
    putc('\n', out);
}

static void show_upstream(struct json_value upstream, FILE *out)
{
    struct json_value servers = json_member(upstream, "servers"), at = { NULL, 0 };
    struct json_value names = json_member(upstream, "names");
    char zone[TEXT_MAX];

    reply_text(out, upstream,
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

static void show_upstreams(struct json_value reply, FILE *out)
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
        reply_text(out, reply, "\n{left_out} servers more are not shown\n");
}

/* Writes the request; NULL without memory. */
static char *make_request(const struct cmdline *cmdline)
{
    struct json json;
    size_t n;

    json_begin(&json);
    json_object(&json, NULL);
    json_string(&json, "command", "upstream");
    if (cmdline->argument != NULL)
        json_string(&json, "upstream", cmdline->argument);
    if (cmdline->more_n == 2) {
        json_string(&json, "state", cmdline->more[0]);
        json_string(&json, "server", cmdline->more[1]);
    }
    json_close(&json);
    return json_end(&json, &n);
}

int cli_upstream(const struct cmdline *cmdline, struct log *log)
{
    char *request;
    int status;

    if (cmdline->more_n == 1) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"upstream %s %s\", expected \"upstream %s up|drain|down|auto "
            "server\"",
            cmdline->argument, cmdline->more[0], cmdline->argument);
        return EXIT_FAILURE;
    }
    request = make_request(cmdline);
    if (request == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the request");
        return EXIT_FAILURE;
    }
    status = cli_ask(cmdline, request, show_upstreams, log);
    free(request);
    return status;
}
