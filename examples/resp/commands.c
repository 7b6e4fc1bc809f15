/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of commands, and the commands about the connection and the server. */
#include "resp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct command {
    const char *name;   /* in lower case; of a command's part: "config|get" */
    size_t least, most; /* words, its name included; 0: any number */
    void (*run)(struct resp_request *request);
    const struct command *parts; /* the second word names a command of the table */
};

/* Counts the table below. */
static size_t count_commands(void);

static void run_ping(struct resp_request *request)
{
    if (request->n == 1)
        resp_status(request->conn, "PONG");
    else
        resp_bulk(request->conn, request->words[1]);
}

static void run_echo(struct resp_request *request)
{
    resp_bulk(request->conn, request->words[1]);
}

static void run_quit(struct resp_request *request)
{
    resp_status(request->conn, "OK");
    request->ended = 1;
}

static void run_select(struct resp_request *request)
{
    int64_t number;

    if (resp_number(request->words[1], &number) == -1)
        resp_error(request->conn, RESP_NOT_AN_INTEGER);
    else if (number != 0)
        resp_error(request->conn, "ERR DB index is out of range");
    else
        resp_status(request->conn, "OK");
}

static void run_dbsize(struct resp_request *request)
{
    resp_integer(request->conn, (int64_t)fb_map_count(request->conf->map));
}

/* Accepts a description of the client, and does not store it. */
static void run_ok(struct resp_request *request)
{
    resp_status(request->conn, "OK");
}

static void run_nil(struct resp_request *request)
{
    resp_nil(request->conn);
}

static void run_client_id(struct resp_request *request)
{
    resp_integer(request->conn, (int64_t)(fb_ref_of(request->conn) & INT64_MAX));
}

/* Describes no command: redis-cli needs no descriptions. */
static void run_nothing(struct resp_request *request)
{
    resp_array(request->conn, 0);
}

static void run_command_count(struct resp_request *request)
{
    resp_integer(request->conn, (int64_t)count_commands());
}

/* Replies to the parameters that redis-benchmark reads. */
static void run_config_get(struct resp_request *request)
{
    static const char *const values[][2] = { { "save", "" }, { "appendonly", "no" } };
    size_t found[2], n = 0;

    for (size_t i = 0; i < 2; i++)
        for (size_t word = 2; word < request->n; word++)
            if (resp_is(request->words[word], values[i][0])) {
                found[n++] = i;
                break;
            }
    resp_array(request->conn, 2 * n);
    for (size_t i = 0; i < n; i++) {
        resp_text(request->conn, values[found[i]][0]);
        resp_text(request->conn, values[found[i]][1]);
    }
}

static void run_info(struct resp_request *request)
{
    static const char *const sections[] = { "Server", "Clients", "Stats", "Keyspace" };
    fb_conn *conn = request->conn;
    char lines[4][128], text[640] = "";
    size_t n = 0;

    snprintf(
        lines[0], sizeof(lines[0]), "redis_mode:standalone\r\nprocess_id:%ld\r\n", (long)getpid());
    snprintf(lines[1], sizeof(lines[1]), "connected_clients:%" PRId64 "\r\n",
        fb_metric_total(conn, RESP_CLIENTS));
    snprintf(lines[2], sizeof(lines[2]),
        "total_connections_received:%" PRId64 "\r\ntotal_commands_processed:%" PRId64 "\r\n",
        fb_metric_total(conn, RESP_CONNECTIONS), fb_metric_total(conn, RESP_COMMANDS));
    snprintf(
        lines[3], sizeof(lines[3]), "db0:keys=%" PRIu64 "\r\n", fb_map_count(request->conf->map));
    for (size_t i = 0; i < 4; i++)
        if (request->n == 1 || resp_is(request->words[1], sections[i]))
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s# %s\r\n%s", n > 0 ? "\r\n" : "",
                sections[i], lines[i]);
    resp_text(conn, text);
}

static const struct command client_parts[] = {
    { "client|getname", 2, 2, run_nil, NULL },
    { "client|id", 2, 2, run_client_id, NULL },
    { "client|setinfo", 4, 4, run_ok, NULL },
    { "client|setname", 3, 3, run_ok, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const struct command command_parts[] = {
    { "command|count", 2, 2, run_command_count, NULL },
    { "command|docs", 2, 0, run_nothing, NULL },
    { "command|info", 2, 0, run_nothing, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const struct command config_parts[] = {
    { "config|get", 3, 0, run_config_get, NULL },
    { NULL, 0, 0, NULL, NULL },
};

/* The most frequent commands come first. */
static const struct command commands[] = {
    { "get", 2, 2, resp_get, NULL },
    { "set", 3, 0, resp_set, NULL },
    { "incr", 2, 2, resp_incr, NULL },
    { "mget", 2, 0, resp_mget, NULL },
    { "del", 2, 0, resp_del, NULL },
    { "expire", 3, 3, resp_expire, NULL },
    { "exists", 2, 0, resp_exists, NULL },
    { "mset", 3, 0, resp_mset, NULL },
    { "ping", 1, 2, run_ping, NULL },
    { "decr", 2, 2, resp_decr, NULL },
    { "incrby", 3, 3, resp_incrby, NULL },
    { "decrby", 3, 3, resp_decrby, NULL },
    { "ttl", 2, 2, resp_ttl, NULL },
    { "pttl", 2, 2, resp_pttl, NULL },
    { "pexpire", 3, 3, resp_pexpire, NULL },
    { "persist", 2, 2, resp_persist, NULL },
    { "echo", 2, 2, run_echo, NULL },
    { "select", 2, 2, run_select, NULL },
    { "dbsize", 1, 1, run_dbsize, NULL },
    { "info", 1, 2, run_info, NULL },
    { "client", 2, 0, NULL, client_parts },
    { "config", 2, 0, NULL, config_parts },
    { "command", 1, 0, run_nothing, command_parts },
    { "quit", 1, 0, run_quit, NULL },
    { "append", 3, 3, resp_append, NULL },
    { "getdel", 2, 2, resp_getdel, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static size_t count_commands(void)
{
    return sizeof(commands) / sizeof(commands[0]) - 1;
}

/* Finds a command by its name without the first `skip` bytes, which are common to all. */
static const struct command *find_command(const struct command *table, fb_bytes word, size_t skip)
{
    for (; table->name != NULL; table++)
        if (resp_is(word, table->name + skip))
            return table;
    return NULL;
}

static int bounded_length(size_t n, size_t most)
{
    return (int)(n < most ? n : most);
}

static void reply_unknown(const struct resp_request *request)
{
    const size_t most = 128;
    const fb_bytes *words = request->words;
    char text[160] = "";
    size_t n = 0;

    for (size_t i = 1; i < request->n && n < most; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "'%.*s' ",
            bounded_length(words[i].n, most - n), (const char *)words[i].p);
    resp_error(request->conn, "ERR unknown command '%.*s', with args beginning with: %s",
        bounded_length(words[0].n, most), (const char *)words[0].p, text);
}

static void reply_unknown_part(const struct resp_request *request, const char *whole)
{
    char name[16];
    size_t n = 0;

    for (; whole[n] != '\0'; n++)
        name[n] = (char)(whole[n] - 'a' + 'A');
    resp_error(request->conn, "ERR unknown subcommand '%.*s'. Try %.*s HELP.",
        bounded_length(request->words[1].n, 128), (const char *)request->words[1].p, (int)n, name);
}

void resp_wrong_number(const struct resp_request *request)
{
    resp_error(request->conn, "ERR wrong number of arguments for '%s' command", request->name);
}

void resp_run(struct resp_request *request)
{
    const struct command *command = find_command(commands, request->words[0], 0);

    fb_count_request(request->conn);
    fb_metric_add(request->conn, RESP_COMMANDS, 1);
    if (command == NULL) {
        reply_unknown(request);
        return;
    }
    if (command->parts != NULL && request->n > 1) {
        const struct command *whole = command;

        command = find_command(whole->parts, request->words[1], strlen(whole->name) + 1);
        if (command == NULL) {
            reply_unknown_part(request, whole->name);
            return;
        }
    }
    request->name = command->name;
    if (request->n < command->least || (command->most > 0 && request->n > command->most))
        resp_wrong_number(request);
    else
        command->run(request);
}
