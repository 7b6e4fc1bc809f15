/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the statistics of a reply to "status". */
#include "cli/reply_traffic.h"

#include "base/compiler.h"
#include "cli/reply_template.h"

#include <inttypes.h>

/* Shows how often each end has come, in a line. */
static void show_ends(struct json_value ended, FILE *out)
{
    struct json_value end = { NULL, 0 };
    const char *before = "  ended: ";
    char name[REPLY_NAME_MAX + 1];

    while ((end = json_next_member(ended, end, name, sizeof(name))).text != NULL) {
        fprintf(out, "%s%" PRId64 " %s", before, json_integer(end, 0), name);
        before = ", ";
    }
    if (before[0] == ',')
        putc('\n', out);
}

void reply_text_servers(struct json_value servers, FILE *out)
{
    struct json_value server = { NULL, 0 }, none = { NULL, 0 };
    int listen = reply_column_width(servers, "listen", "LISTEN");
    int protocol = reply_column_width(servers, "protocol", "PROTOCOL");
    char template[REPLY_TEXT_MAX];

    if (json_next(servers, none).text == NULL)
        return;
    fprintf(out, "\n%-*s  %-*s  %9s  %12s  %15s  %15s\n", listen, "LISTEN", protocol, "PROTOCOL",
        "ACTIVE", "ACCEPTED", "RECEIVED", "SENT");
    snprintf(template, sizeof(template),
        "{listen:-%d}  {protocol:-%d}  {active:9}  {accepts:12}  {received:15}  {sent:15}\n",
        listen, protocol);
    while ((server = json_next(servers, server)).text != NULL) {
        reply_write(out, server, template);
        if (reply_has(server, "name"))
            reply_write(out, server, "  server {name}\n");
        if (json_is_true(json_member(server, "dropped")))
            fputs("  dropped by a reload, and drains\n", out);
        show_ends(json_member(server, "ended"), out);
    }
}

/* Shows the troubles of sessions with a server, if any, in a line. */
static void show_troubles(struct json_value server, FILE *out)
{
    static const char *const troubles[] = { "refusals", "timeouts", "resets", "slow" };

    reply_write_counts(out, server, troubles, countof(troubles), "  troubles: ");
}

static void show_queue(struct json_value queue, FILE *out)
{
    reply_write(out, queue, "  queue of {upstream}: {waiting} waiting, {waits} ever");
    reply_write(out, json_member(queue, "times"), ", 99% < {p99_ms|within}\n");
    show_ends(json_member(queue, "ended"), out);
}

void reply_text_upstream_servers(struct json_value servers, FILE *out)
{
    struct json_value server = { NULL, 0 }, none = { NULL, 0 };
    int upstream = reply_column_width(servers, "upstream", "UPSTREAM");
    int address = reply_column_width(servers, "server", "SERVER");
    char template[REPLY_TEXT_MAX];

    if (json_next(servers, none).text == NULL)
        return;
    fprintf(out, "\n%-*s  %-*s  %9s  %12s  %10s  %10s  %15s  %15s\n", upstream, "UPSTREAM", address,
        "SERVER", "ACTIVE", "TRIES", "CONN 99% <", "BYTE 99% <", "RECEIVED", "SENT");
    snprintf(template, sizeof(template), "{upstream:-%d}  {server:-%d}  {active:9}  {tries:12}",
        upstream, address);
    while ((server = json_next(servers, server)).text != NULL) {
        if (reply_has(server, "waits")) {
            show_queue(server, out);
            continue;
        }
        reply_write(out, server, template);
        reply_write(out, json_member(server, "connect"), "  {p99_ms|within:10}");
        reply_write(out, json_member(server, "first_byte"), "  {p99_ms|within:10}");
        reply_write(out, server, "  {received:15}  {sent:15}\n");
        if (json_is_true(json_member(server, "dropped")))
            fputs("  dropped by a reload, and drains\n", out);
        show_ends(json_member(server, "ended"), out);
        show_troubles(server, out);
    }
}
