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
static void print_troubles(struct json_value server)
{
    int64_t resets = number_of(server, "resets"), timeouts = number_of(server, "timeouts");
    int64_t refusals = number_of(server, "refusals"), slow = number_of(server, "slow");

    if ((resets | timeouts | refusals | slow) != 0)
        printf("    resets: %" PRId64 ", connect time-outs: %" PRId64 ", refusals: %" PRId64
               ", slow first bytes: %" PRId64 "\n",
            resets, timeouts, refusals, slow);
}

static void print_server(struct json_value server)
{
    char name[2 * NAME_MAX_SHOWN], state[NAME_MAX_SHOWN], set[NAME_MAX_SHOWN];

    printf("  %-30s %-10s %-5s %6" PRId64 " %11" PRId64 " %9" PRId64 " %8" PRId64 "%s\n",
        format_server(server, name), text_of(server, "state", state), text_of(server, "set", set),
        number_of(server, "weight"), number_of(server, "connections"),
        number_of(server, "sessions"), number_of(server, "failures"),
        json_is_true(json_member(server, "backup")) ? " backup" : "");
    print_troubles(server);
}

/* Prints what is known of a server's name: "a.test:80: 2 addresses, 3 s old". */
static void print_name(struct json_value name)
{
    int64_t n = number_of(name, "addresses"), age = json_integer(json_member(name, "age_ms"), -1);
    int64_t failed = json_integer(json_member(name, "failed_ms"), -1);
    char text[NAME_MAX_SHOWN];

    printf("  %s: ", text_of(name, "server", text));
    if (age < 0)
        printf("no answer yet");
    else
        printf(
            "%" PRId64 " %s, %" PRId64 " s old", n, n == 1 ? "address" : "addresses", age / 1000);
    if (failed >= 0)
        printf("; for %" PRId64 " s %s", failed / 1000, text_of(name, "error", text));
    putchar('\n');
}

static void print_upstream(struct json_value upstream)
{
    struct json_value servers = json_member(upstream, "servers"), at = { NULL, 0 };
    struct json_value names = json_member(upstream, "names");
    char name[NAME_MAX_SHOWN], balancer[NAME_MAX_SHOWN], zone[NAME_MAX_SHOWN];

    printf("upstream %s, %s", text_of(upstream, "name", name),
        text_of(upstream, "balancer", balancer));
    if (json_text(json_member(upstream, "zone"), zone, sizeof(zone)))
        printf(", zone %s\n", zone);
    else
        printf(", without a zone: each worker has a state of its own\n");
    printf("  %-30s %-10s %-5s %6s %11s %9s %8s\n", "server", "state", "set", "weight",
        "connections", "sessions", "failures");
    while ((at = json_next(servers, at)).text != NULL)
        print_server(at);
    for (at = (struct json_value) { NULL, 0 }; (at = json_next(names, at)).text != NULL;)
        print_name(at);
}

static void print_all(struct json_value reply)
{
    struct json_value upstreams = json_member(reply, "upstreams"), at = { NULL, 0 };
    int64_t left_out = number_of(reply, "left_out");
    bool first = true;

    while ((at = json_next(upstreams, at)).text != NULL) {
        if (!first)
            putchar('\n');
        print_upstream(at);
        first = false;
    }
    if (left_out > 0)
        printf("\n%" PRId64 " servers more are not shown\n", left_out);
}

static int print_reply(
    const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log)
{
    struct json_value outcome = json_parse(reply->text, reply->line_n);
    bool ok = json_is_true(json_member(outcome, "ok"));
    int status = ok ? EXIT_SUCCESS : EXIT_FAILURE;
    char error[4096];

    if ((cmdline->options & CMDLINE_JSON) != 0) {
        fwrite(reply->text, 1, reply->line_n, stdout);
    } else if (!ok) {
        if (!json_text(json_member(outcome, "error"), error, sizeof(error)))
            snprintf(error, sizeof(error), "the daemon's reply is not valid");
        log_write(log, LEVEL_EMERG, 0, "%s", error);
    } else {
        print_all(outcome);
    }
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
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
    status = cli_ask(cmdline, request, print_reply, log);
    free(request);
    return status;
}
