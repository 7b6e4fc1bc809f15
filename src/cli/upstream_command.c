/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the daemon for its upstreams, or to change the state of a server, and prints the reply. The
 * daemon may be of another version: a missing member of the reply counts as empty. */
#include "cli/upstream_command.h"

#include "base/json.h"
#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_SHOWN 256

static const char *text_of(struct json_value object, const char *name, char text[NAME_MAX_SHOWN])
{
    if (!json_text(json_member(object, name), text, NAME_MAX_SHOWN))
        snprintf(text, NAME_MAX_SHOWN, "-");
    return text;
}

static int64_t number_of(struct json_value object, const char *name)
{
    return json_integer(json_member(object, name), 0);
}

/* Formats the name, and behind it the address where that is another text. */
static const char *format_server(struct json_value server, char text[2 * NAME_MAX_SHOWN])
{
    char name[NAME_MAX_SHOWN], address[NAME_MAX_SHOWN];

    text_of(server, "server", name);
    if (!json_text(json_member(server, "address"), address, sizeof(address)) ||
        strcmp(name, address) == 0)
        snprintf(text, 2 * NAME_MAX_SHOWN, "%s", name);
    else
        snprintf(text, 2 * NAME_MAX_SHOWN, "%s %s", name, address);
    return text;
}

/* Prints which troubles sessions have had with a server, where they had any. */
static void print_troubles(struct json_value server, FILE *out)
{
    int64_t resets = number_of(server, "resets"), timeouts = number_of(server, "timeouts");
    int64_t refusals = number_of(server, "refusals"), slow = number_of(server, "slow");

    if ((resets | timeouts | refusals | slow) != 0)
        fprintf(out,
            "    resets: %" PRId64 ", connect time-outs: %" PRId64 ", refusals: %" PRId64
            ", slow first bytes: %" PRId64 "\n",
            resets, timeouts, refusals, slow);
}

static void print_server(struct json_value server, FILE *out)
{
    char name[2 * NAME_MAX_SHOWN], state[NAME_MAX_SHOWN], set[NAME_MAX_SHOWN];

    fprintf(out, "  %-30s %-10s %-5s %6" PRId64 " %11" PRId64 " %9" PRId64 " %8" PRId64 "%s\n",
        format_server(server, name), text_of(server, "state", state), text_of(server, "set", set),
        number_of(server, "weight"), number_of(server, "connections"),
        number_of(server, "sessions"), number_of(server, "failures"),
        json_is_true(json_member(server, "backup")) ? " backup" : "");
    print_troubles(server, out);
}

/* Prints what is known of a server's name: "a.test:80: 2 addresses, 3 s old". */
static void print_name(struct json_value name, FILE *out)
{
    int64_t n = number_of(name, "addresses"), age = json_integer(json_member(name, "age_ms"), -1);
    int64_t failed = json_integer(json_member(name, "failed_ms"), -1);
    char text[NAME_MAX_SHOWN];

    fprintf(out, "  %s: ", text_of(name, "server", text));
    if (age < 0)
        fprintf(out, "no answer yet");
    else
        fprintf(out, "%" PRId64 " %s, %" PRId64 " s old", n, n == 1 ? "address" : "addresses",
            age / 1000);
    if (failed >= 0)
        fprintf(out, "; for %" PRId64 " s %s", failed / 1000, text_of(name, "error", text));
    putc('\n', out);
}

static void print_upstream(struct json_value upstream, FILE *out)
{
    struct json_value servers = json_member(upstream, "servers"), at = { NULL, 0 };
    struct json_value names = json_member(upstream, "names");
    char name[NAME_MAX_SHOWN], balancer[NAME_MAX_SHOWN], zone[NAME_MAX_SHOWN];

    fprintf(out, "upstream %s, %s", text_of(upstream, "name", name),
        text_of(upstream, "balancer", balancer));
    if (json_text(json_member(upstream, "zone"), zone, sizeof(zone)))
        fprintf(out, ", zone %s\n", zone);
    else
        fprintf(out, ", without a zone: each worker has a state of its own\n");
    fprintf(out, "  %-30s %-10s %-5s %6s %11s %9s %8s\n", "server", "state", "set", "weight",
        "connections", "sessions", "failures");
    while ((at = json_next(servers, at)).text != NULL)
        print_server(at, out);
    for (at = (struct json_value) { NULL, 0 }; (at = json_next(names, at)).text != NULL;)
        print_name(at, out);
}

static void print_all(struct json_value reply, FILE *out)
{
    struct json_value upstreams = json_member(reply, "upstreams"), at = { NULL, 0 };
    int64_t left_out = number_of(reply, "left_out");
    bool first = true;

    while ((at = json_next(upstreams, at)).text != NULL) {
        if (!first)
            putc('\n', out);
        print_upstream(at, out);
        first = false;
    }
    if (left_out > 0)
        fprintf(out, "\n%" PRId64 " servers more are not shown\n", left_out);
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
    status = cli_ask(cmdline, request, print_all, log);
    free(request);
    return status;
}
