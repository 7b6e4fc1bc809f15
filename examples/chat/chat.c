/* SPDX-License-Identifier: BSD-2-Clause */
/* chat: a client's first line is its name. Later lines go to all clients, in any worker; "@name
 * text" goes to a single client, and "/who" lists the clients. */
#include <forkbeard/forkbeard.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#define NAME_MAX_BYTES 31
#define LINE_MAX_BYTES 1000
#define PAUSE_MS 50 /* between two lines of a client */
#define ENTER_MS 30000
#define NAMES_TOLD 1000

enum { TIMER_PAUSE, TIMER_ENTER };

struct chat_conf {
    fb_map *names; /* clients; each has a struct place */
};

/* The place of a client. */
struct place {
    fb_ref client, worker;
};

struct client {
    fb_conn *conn;
    fb_bytes name;
    LIST_ENTRY(client) link;
};

struct chat_worker {
    fb_map *names;
    unsigned others; /* workers */
    LIST_HEAD(, client) clients;
};

static const fb_bytes nothing = { (const uint8_t *)"", 0 };
static const fb_frame_limit limit = { .most = LINE_MAX_BYTES };

static fb_map *names_of(fb_worker *worker)
{
    return ((struct chat_worker *)fb_own_state(worker))->names;
}

/* Writes to the clients of the current worker, except to `except`. */
static void write_all(struct chat_worker *own, const struct client *except, fb_bytes line)
{
    struct client *client;

    LIST_FOREACH (client, &own->clients, link)
        if (client != except)
            fb_write(client->conn, line.p, line.n);
}

/* Makes "name: text" in memory freed by fb_temp_reset(); empty without memory. */
static fb_bytes make_line(const struct client *client, const char *between, fb_bytes text)
{
    size_t room = client->name.n + strlen(between) + text.n + 2;
    char *line = fb_temp_alloc(client->conn, room);

    if (line == NULL)
        return nothing;
    snprintf(line, room, "%.*s%s%.*s\n", (int)client->name.n, (const char *)client->name.p, between,
        (int)text.n, (const char *)text.p);
    return (fb_bytes) { (const uint8_t *)line, strlen(line) };
}

/* Sends the text to all clients of all workers except the speaker. */
static void say(struct client *client, const char *between, fb_bytes text)
{
    fb_bytes line = make_line(client, between, text);

    if (line.n == 0)
        return;
    write_all(fb_worker_state(client->conn), client, line);
    fb_send_all(fb_worker_of(client->conn), line.p, line.n);
}

static void say_to(struct client *client, fb_bytes name, fb_bytes text)
{
    fb_worker *worker = fb_worker_of(client->conn);
    struct place place = { 0, 0 };
    fb_item item = { .value = &place, .room = sizeof(place) };
    fb_bytes line = make_line(client, " to you: ", text);

    if (fb_map_get(worker, names_of(worker), name, &item) != FB_MAP_OK ||
        fb_send_message(client->conn, place.client, line.p, line.n) == 0)
        fb_write(client->conn, "- not told\n", 11);
}

static void tell_names(struct client *client)
{
    fb_worker *worker = fb_worker_of(client->conn);
    const struct chat_worker *own = fb_own_state(worker);
    char name[NAME_MAX_BYTES], text[100];
    fb_item key = { .value = name, .room = sizeof(name) }, item = { .room = 0 };
    fb_map_cursor cursor = { 0 };
    fb_map_status status;

    for (int i = 0; i < NAMES_TOLD; i++) {
        status = fb_map_next(worker, own->names, &cursor, &key, &item);
        if (status == FB_MAP_ABSENT)
            break;
        if (status == FB_MAP_OK) {
            snprintf(text, sizeof(text), "- %.*s\n", (int)key.n, name);
            fb_write(client->conn, text, strlen(text));
        }
    }
    snprintf(text, sizeof(text), "- worker %u of %u, which knows of %u others\n",
        (unsigned)fb_worker_number(worker) + 1, (unsigned)fb_worker_count(worker), own->others);
    fb_write(client->conn, text, strlen(text));
}

/* ---- Clients ---- */

/* Takes the name in the first line; the name must be unused. */
static void enter(struct client *client, fb_bytes name)
{
    struct chat_worker *own = fb_worker_state(client->conn);
    fb_worker *worker = fb_worker_of(client->conn);
    struct place place = { fb_ref_of(client->conn), fb_worker_id(worker) };
    uint8_t *copy = NULL;

    if (name.n > 0 && name.n <= NAME_MAX_BYTES)
        copy = fb_alloc(client->conn, name.n);
    if (copy == NULL ||
        fb_map_replace(worker, names_of(worker), name, 0,
            (fb_bytes) { (const uint8_t *)&place, sizeof(place) }, 0) != FB_MAP_OK) {
        fb_write(client->conn, "- choose another name\n", 22);
        return;
    }
    memcpy(copy, name.p, name.n);
    client->name = (fb_bytes) { copy, name.n };
    LIST_INSERT_HEAD(&own->clients, client, link);
    fb_timer_cancel(client->conn, TIMER_ENTER);
    say(client, " comes", nothing);
}

static void take_line(struct client *client, fb_bytes line)
{
    const uint8_t *space = memchr(line.p, ' ', line.n);

    if (client->name.n == 0)
        enter(client, line);
    else if (line.n == 4 && memcmp(line.p, "/who", 4) == 0)
        tell_names(client);
    else if (line.n > 0 && line.p[0] == '@' && space != NULL)
        say_to(client, (fb_bytes) { line.p + 1, (size_t)(space - line.p) - 1 },
            (fb_bytes) { space + 1, line.n - (size_t)(space - line.p) - 1 });
    else
        say(client, ": ", line);
}

/* Replaces bytes that would move the readers' cursor, or worse, by '?'. */
static fb_bytes make_printable(fb_conn *conn, fb_bytes line)
{
    uint8_t *copy = fb_temp_alloc(conn, line.n);

    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    if (copy == NULL)
        return nothing;
    for (size_t i = 0; i < line.n; i++)
        copy[i] = line.p[i] < ' ' || line.p[i] == 0x7f ? '?' : line.p[i];
    return (fb_bytes) { copy, line.n };
}

/* Takes a line, and the next after a pause. */
static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_bytes rest = in, line;

    if (!fb_frame_until(conn, &rest, "\n", 1, &limit, &line))
        return 0;
    take_line(state, make_printable(conn, line));
    fb_temp_reset(conn);
    fb_stop(conn);
    fb_timer(conn, TIMER_PAUSE, PAUSE_MS);
    return in.n - rest.n;
}

static void client_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)state;
    if (id == TIMER_PAUSE)
        fb_resume(conn);
    else
        fb_close(conn);
}

static int client_opened(fb_conn *conn, void *state)
{
    ((struct client *)state)->conn = conn;
    fb_timer(conn, TIMER_ENTER, ENTER_MS);
    return 0;
}

/* Delivers a line from another client. */
static int client_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)state, (void)from;
    fb_write(conn, message.p, message.n);
    return 0;
}

static void client_answered(fb_conn *conn, void *state, uint64_t message, fb_outcome outcome)
{
    (void)state, (void)message;
    if (outcome == FB_MESSAGE_BUSY)
        fb_write(conn, "- busy, try again\n", 18);
    else if (outcome != FB_MESSAGE_HANDLED)
        fb_write(conn, "- not told\n", 11);
}

static void client_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)state, (void)deadline;
    fb_write(conn, "- come again\n", 13);
    fb_close(conn);
}

static void client_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct client *client = state;

    (void)reason;
    if (client->name.n == 0)
        return;
    LIST_REMOVE(client, link);
    fb_map_delete(fb_worker_of(conn), names_of(fb_worker_of(conn)), client->name);
    say(client, " goes", nothing);
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = client_opened,
    .data = client_data,
    .timer = client_timer,
    .draining = client_draining,
    .message = client_message,
    .answered = client_answered,
    .closed = client_closed,
};

/* ---- The worker ---- */

/* A line of another worker's client. */
static int worker_message(fb_worker *worker, void *state, fb_ref from, fb_bytes message)
{
    (void)worker, (void)from;
    write_all(state, NULL, message);
    return 0;
}

/* The walk through the names of a worker that has gone. */
struct sweep {
    fb_ref gone;
    fb_map_cursor cursor;
};

/* Removes the names left by a killed worker: some, and the rest in the next turn. All workers do
 * so; a name with a new owner has another version, and stays. */
static void sweep(fb_worker *worker, void *work)
{
    struct sweep *own = work;
    struct place place = { 0, 0 };
    char name[NAME_MAX_BYTES];
    fb_item key = { .value = name, .room = sizeof(name) };
    fb_item item = { .value = &place, .room = sizeof(place) };

    for (int i = 0; i < 1000; i++) {
        fb_map_status status = fb_map_next(worker, names_of(worker), &own->cursor, &key, &item);

        if (status == FB_MAP_ABSENT)
            return;
        if (status == FB_MAP_OK && place.worker == own->gone)
            fb_map_remove(worker, names_of(worker), (fb_bytes) { key.value, key.n }, item.version);
    }
    fb_post(worker, sweep, own, sizeof(*own));
}

static void worker_gone(fb_worker *worker, void *state, fb_ref id)
{
    struct sweep work = { .gone = id };

    ((struct chat_worker *)state)->others--;
    sweep(worker, &work);
}

static void worker_came(fb_worker *worker, void *state, fb_ref id)
{
    (void)worker, (void)id;
    ((struct chat_worker *)state)->others++;
}

static int worker_start(fb_worker *worker, void *state)
{
    const struct chat_conf *conf = fb_worker_conf(worker, 0);

    ((struct chat_worker *)state)->names = conf->names; /* of all servers */
    return 0;
}

static const fb_worker_ops worker_ops = {
    .size = sizeof(fb_worker_ops),
    .message = worker_message,
    .worker_came = worker_came,
    .worker_gone = worker_gone,
};

static int conf_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = {
        .size = sizeof(options),
        .name = "names",
        .version = 1,
        .capacity = 100000,
        .key_max = NAME_MAX_BYTES,
        .value_max = sizeof(struct place),
    };

    (void)parent;
    ((struct chat_conf *)own)->names = fb_conf_map(conf, &options);
    return ((struct chat_conf *)own)->names != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "chat", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(chat) = {
    FB_PROTOCOL_HEADER,
    .name = "chat",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct client),
    .conf_state = sizeof(struct chat_conf),
    .worker_state = sizeof(struct chat_worker),
    .output_limit = 1024 * 1024, /* drops clients that do not read the lines of the room */
    .ops = &ops,
    .conf_done = conf_done,
    .worker_start = worker_start,
    .worker_ops = &worker_ops,
};
