/* SPDX-License-Identifier: BSD-2-Clause */
/* A module with messages between its workers. A client gives orders to its worker, a line each:
 *
 *     who              says the ids of all known workers, in order: "who 2 ID ID"
 *     id               says "id ID NUMBER COUNT" of the worker
 *     ref              says the connection's reference
 *     all TEXT         sends to all; later says "all N handled, N declined, N unknown, N busy"
 *     flood N          sends to all N times, with numbers, for the receivers to check the order;
 *                      busy messages are sent again until handled
 *     to REF TEXT      sends to a worker or a connection; later says "to" and the outcome
 *     find REF         says "find found" or "find none"
 *     tell REF TEXT    sends as "to" does, from the connection
 *     count            says the number of received flood messages, and of those out of order
 *
 * Each worker repeats received text to the latest client, "got TEXT from ID", and declines text
 * that begins with "no". The worker says "came ID" and "gone ID", too. COUNCIL is the protocol's
 * name, and COUNCIL_FLAGS are its flags. */
#include <forkbeard/forkbeard.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef COUNCIL
#define COUNCIL "council"
#endif
#ifndef COUNCIL_FLAGS
#define COUNCIL_FLAGS 0
#endif

#define KNOWN_MAX 64
#define RETRY_MS 5

/* A pending order: the sum of all outcomes. */
struct order {
    uint64_t outcomes[FB_MESSAGE_BUSY + 1];
    uint64_t left;
    const char *word; /* NULL: there is none */
};

struct again {
    fb_ref to;
    uint64_t number;
};

struct numbered {
    uint64_t message, number;
};

struct state {
    fb_ref client;
    fb_ref known[KNOWN_MAX];
    unsigned known_n;
    struct order order;
    uint64_t flood, sent; /* how many are to be sent, and were */
    struct again *agains; /* refused messages of a flood, in order */
    size_t again_n, again_first, again_room;
    struct numbered *numbers; /* messages of a flood */
    size_t number_n;
    /* the floods of other workers: numbers received, and numbers out of order, by sender */
    struct given {
        fb_ref from;
        uint64_t n, disorder;
    } given[KNOWN_MAX];
};

static const fb_frame_limit limit = { .most = 1000 };
static const char *const names[] = { "-", "handled", "declined", "unknown", "busy" };

static void FB_SDK_PRINTF(2, 3) say(fb_worker *worker, const char *format, ...)
{
    struct state *state = fb_own_state(worker);
    fb_conn *conn = fb_find(worker, state->client);
    char text[4096];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (conn != NULL)
        fb_write(conn, text, (size_t)n);
}

static void say_known(fb_worker *worker, const struct state *state)
{
    char text[KNOWN_MAX * 20] = "";
    size_t n = 0;

    for (unsigned i = 0; i < state->known_n; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %" PRIx64, state->known[i]);
    say(worker, "who %u%s\n", state->known_n, text);
}

static void finish_order(fb_worker *worker, struct state *state)
{
    const uint64_t *n = state->order.outcomes;

    say(worker,
        "%s %" PRIu64 " handled, %" PRIu64 " declined, %" PRIu64 " unknown, %" PRIu64 " busy\n",
        state->order.word, n[FB_MESSAGE_HANDLED], n[FB_MESSAGE_DECLINED], n[FB_MESSAGE_UNKNOWN],
        n[FB_MESSAGE_BUSY]);
    state->order.word = NULL;
}

/* The messages of a flood are "#1", "#2" and so on; their numbers are remembered. */
static void send_flood(fb_worker *worker, struct state *state)
{
    char text[32];

    while (state->sent < state->flood && state->again_n == state->again_first) {
        int n = snprintf(text, sizeof(text), "#%" PRIu64, state->sent + 1);
        uint64_t message = fb_send_all(worker, text, (size_t)n);

        if (message == 0)
            return;
        state->numbers[state->number_n++] = (struct numbered) { message, ++state->sent };
    }
}

static uint64_t number_of(const struct state *state, uint64_t message)
{
    for (size_t i = state->number_n; i-- > 0;)
        if (state->numbers[i].message == message)
            return state->numbers[i].number;
    return 0;
}

/* Sends refused messages again, in order, and stops at the first refusal by the call. */
static void send_again(fb_worker *worker, struct state *state)
{
    char text[32];

    while (state->again_first < state->again_n) {
        struct again *again = &state->agains[state->again_first];
        int n = snprintf(text, sizeof(text), "#%" PRIu64, again->number);
        uint64_t message = fb_send_worker(worker, again->to, text, (size_t)n);

        if (message == 0)
            return;
        state->numbers[state->number_n++] = (struct numbered) { message, again->number };
        state->again_first++;
    }
    send_flood(worker, state);
}

static void handle_command(fb_conn *conn, fb_worker *worker, char *line)
{
    struct state *state = fb_own_state(worker);
    char *word = strtok(line, " "), *rest = strtok(NULL, "");
    char *text = rest != NULL ? strchr(rest, ' ') : NULL;
    fb_ref to = rest != NULL ? strtoull(rest, NULL, 16) : 0;

    state->client = fb_ref_of(conn);
    if (word == NULL)
        return;
    if (strcmp(word, "who") == 0) {
        say_known(worker, state);
    } else if (strcmp(word, "id") == 0) {
        say(worker, "id %" PRIx64 " %u %u\n", fb_worker_id(worker), fb_worker_number(worker),
            fb_worker_count(worker));
    } else if (strcmp(word, "ref") == 0) {
        say(worker, "%" PRIx64 "\n", fb_ref_of(conn));
    } else if (strcmp(word, "count") == 0) {
        uint64_t n = 0, disorder = 0;

        for (unsigned i = 0; i < KNOWN_MAX; i++) {
            n += state->given[i].n;
            disorder += state->given[i].disorder;
        }
        say(worker, "count %" PRIu64 " %" PRIu64 "\n", n, disorder);
    } else if (strcmp(word, "all") == 0 && rest != NULL) {
        state->order = (struct order) { .word = "all" };
        fb_send_all(worker, rest, strlen(rest));
    } else if (strcmp(word, "flood") == 0 && rest != NULL) {
        state->order = (struct order) { .word = "flood" };
        state->flood = strtoull(rest, NULL, 10);
        state->sent = 0;
        state->number_n = state->again_first = state->again_n = 0;
        state->numbers = realloc(state->numbers, sizeof(*state->numbers) * 1000000);
        send_flood(worker, state);
        say(worker, "sent\n");
    } else if (strcmp(word, "to") == 0 && text != NULL) {
        state->order = (struct order) { .word = "to" };
        fb_send_worker(worker, to, text + 1, strlen(text + 1));
    } else if (strcmp(word, "find") == 0) {
        say(worker, "find %s\n", fb_find(worker, to) != NULL ? "found" : "none");
    } else if (strcmp(word, "tell") == 0 && text != NULL) {
        fb_send_message(conn, to, text + 1, strlen(text + 1));
    }
}

static size_t council_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_bytes rest = in, frame;
    char line[1001];

    (void)state;
    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &frame)) {
        memcpy(line, frame.p, frame.n);
        line[frame.n] = '\0';
        handle_command(conn, fb_worker_of(conn), line);
    }
    return in.n - rest.n;
}

static int conn_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)state;
    fb_write(conn, "given ", 6);
    fb_write(conn, message.p, message.n);
    fb_write(conn, "\n", 1);
    return from == 0 || (message.n > 1 && memcmp(message.p, "no", 2) == 0);
}

static void conn_answered(fb_conn *conn, void *state, uint64_t number, fb_outcome outcome)
{
    char text[32];

    (void)state;
    (void)number;
    fb_write(conn, text, (size_t)snprintf(text, sizeof(text), "tell %s\n", names[outcome]));
}

static struct given *given_of(struct state *state, fb_ref from)
{
    for (unsigned i = 0; i < KNOWN_MAX; i++)
        if (state->given[i].from == from || state->given[i].from == 0) {
            state->given[i].from = from;
            return &state->given[i];
        }
    return &state->given[0];
}

static int worker_message(fb_worker *worker, void *arg, fb_ref from, fb_bytes message)
{
    struct state *state = arg;
    struct given *given;
    char text[32];
    uint64_t number;

    if (message.n > 0 && message.p[0] == '#') {
        given = given_of(state, from);
        snprintf(text, sizeof(text), "%.*s", (int)message.n, (const char *)message.p);
        number = strtoull(text + 1, NULL, 10);
        given->disorder += number != given->n + 1;
        given->n = number;
        return 0;
    }
    say(worker, "got %.*s from %" PRIx64 "\n", (int)message.n, (const char *)message.p, from);
    return message.n > 1 && memcmp(message.p, "no", 2) == 0;
}

static void worker_answered(fb_worker *worker, void *arg, const fb_answer *answer)
{
    struct state *state = arg;

    if (state->order.word == NULL)
        return;
    state->order.outcomes[answer->outcome] += answer->to != 0;
    if (strcmp(state->order.word, "to") == 0)
        say(worker, "to %s\n", names[answer->outcome]);
    if (strcmp(state->order.word, "all") == 0 && answer->left == 0) {
        finish_order(worker, state);
        return;
    }
    if (strcmp(state->order.word, "flood") != 0)
        return;
    if (answer->outcome == FB_MESSAGE_BUSY) {
        if (state->again_n == state->again_room) {
            state->again_room = state->again_room * 2 + 64;
            state->agains = realloc(state->agains, state->again_room * sizeof(*state->agains));
        }
        state->agains[state->again_n++] =
            (struct again) { answer->to, number_of(state, answer->message) };
        fb_worker_timer(worker, 1, RETRY_MS);
        return;
    }
    send_flood(worker, state);
    if (state->order.outcomes[FB_MESSAGE_HANDLED] == state->flood * state->known_n)
        finish_order(worker, state);
}

static void worker_timer(fb_worker *worker, void *arg, uint32_t id)
{
    (void)id;
    send_again(worker, arg);
}

static void worker_came(fb_worker *worker, void *arg, fb_ref id)
{
    struct state *state = arg;

    state->known[state->known_n++] = id;
    say(worker, "came %" PRIx64 "\n", id);
}

static void worker_gone(fb_worker *worker, void *arg, fb_ref id)
{
    struct state *state = arg;
    unsigned i = 0;

    while (i < state->known_n && state->known[i] != id)
        i++;
    if (i == state->known_n)
        abort();
    memmove(
        &state->known[i], &state->known[i + 1], (state->known_n - i - 1) * sizeof(state->known[0]));
    state->known_n--;
    say(worker, "gone %" PRIx64 "\n", id);
}

static void council_stop(fb_worker *worker, void *arg)
{
    struct state *state = arg;

    (void)worker;
    free(state->agains);
    free(state->numbers);
}

static const fb_directive directives[] = {
    { .name = COUNCIL, .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};
static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = council_data,
    .message = conn_message,
    .answered = conn_answered,
};
static const fb_worker_ops worker_ops = {
    .size = sizeof(fb_worker_ops),
    .timer = worker_timer,
    .message = worker_message,
    .answered = worker_answered,
    .worker_came = worker_came,
    .worker_gone = worker_gone,
};

FB_PROTOCOL(council) = {
    FB_PROTOCOL_HEADER,
    .name = COUNCIL,
    FB_PROTOCOL_DIRECTIVES(directives),
    .worker_state = sizeof(struct state),
    .ops = &ops,
    .worker_stop = council_stop,
    .worker_ops = &worker_ops,
    .flags = COUNCIL_FLAGS,
};
