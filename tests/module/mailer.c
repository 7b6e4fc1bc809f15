/* SPDX-License-Identifier: BSD-2-Clause */
/* A module with messages between its connections, line by line:
 *
 *     ref              says the connection's reference
 *     send REF TEXT    sends; later says the outcome: "handled", "declined", "unknown" or "busy"
 *     flood REF N      sends N messages, as many at a time as allowed; later says the number of
 *                      messages with each outcome
 *     count            says the number of received messages, and of those out of order
 *     spoil            sends rubbish to all inboxes known to the worker
 *     vandalize        shuts all inboxes down
 *
 * A received message is said, "got TEXT". Text that begins with "no" is declined, with "#" only
 * counted, and "die" ends the worker a little later, when the answer has been sent. MAILER_API is
 * the version of the header claimed by the module. */
#include <forkbeard/forkbeard.h>

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIE_MS 200

struct session {
    uint64_t left;     /* messages to send in a flood */
    uint64_t expected; /* answers to come in a flood */
    fb_ref to;
    uint64_t outcomes[FB_MESSAGE_BUSY + 1];
    uint64_t given, disorder, last;
};

static const fb_frame_limit limit = { .most = 1000 };

static const char *const names[] = {
    [FB_MESSAGE_HANDLED] = "handled",
    [FB_MESSAGE_DECLINED] = "declined",
    [FB_MESSAGE_UNKNOWN] = "unknown",
    [FB_MESSAGE_BUSY] = "busy",
};

static void FB_SDK_PRINTF(2, 3) say(fb_conn *conn, const char *format, ...)
{
    char text[1100];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fb_write(conn, text, strlen(text));
}

/* Messages with decreasing numbers, so the receiver sees the order. */
static void send_flood(fb_conn *conn, struct session *session)
{
    char text[32];

    while (session->left > 0) {
        int n = snprintf(text, sizeof(text), "#%" PRIu64, session->left);

        if (fb_send_message(conn, session->to, text, (size_t)n) == 0)
            return;
        session->left--;
    }
}

#define FD_MAX 256

static int is_of_packets(int fd)
{
    int type = 0;
    socklen_t n = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET;
}

/* Packets of every length, of zeros and of ones, with and without a sense. */
static void spoil_inbox(int fd)
{
    static uint8_t rubbish[FB_MESSAGE_MAX + 100];
    static const size_t lengths[] = { 0, 1, 31, 32, 33, FB_MESSAGE_MAX + 32, sizeof(rubbish) };

    for (int byte = 0; byte < 256; byte += 85) {
        memset(rubbish, byte, sizeof(rubbish));
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
            send(fd, rubbish, lengths[i], MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* The channel to the master: before the first reference there is no other socket of packets. */
static int channel = -1;

static void find_channel(void)
{
    for (int fd = 0; fd < FD_MAX && channel == -1; fd++)
        if (is_of_packets(fd))
            channel = fd;
}

static void attack_inboxes(int shut)
{
    for (int fd = 0; fd < FD_MAX; fd++)
        if (fd == channel || !is_of_packets(fd))
            continue;
        else if (shut)
            shutdown(fd, SHUT_RDWR);
        else
            spoil_inbox(fd);
}

static void handle_command(fb_conn *conn, struct session *session, char *line)
{
    char *word = strtok(line, " "), *ref = strtok(NULL, " "), *rest = strtok(NULL, "");
    fb_ref to = ref != NULL ? strtoull(ref, NULL, 16) : 0;

    find_channel();
    if (word == NULL)
        return;
    if (strcmp(word, "ref") == 0) {
        say(conn, "%" PRIx64 "\n", fb_ref_of(conn));
    } else if (strcmp(word, "send") == 0 && rest != NULL) {
        if (fb_send_message(conn, to, rest, strlen(rest)) == 0)
            say(conn, "refused\n");
    } else if (strcmp(word, "flood") == 0 && rest != NULL) {
        memset(session->outcomes, 0, sizeof(session->outcomes));
        session->to = to;
        session->left = session->expected = strtoull(rest, NULL, 10);
        send_flood(conn, session);
    } else if (strcmp(word, "count") == 0) {
        say(conn, "%" PRIu64 " %" PRIu64 "\n", session->given, session->disorder);
    } else if (strcmp(word, "spoil") == 0 || strcmp(word, "vandalize") == 0) {
        attack_inboxes(word[0] == 'v');
        say(conn, "done\n");
    }
}

static size_t mailer_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_bytes rest = in, frame;
    char line[1001];

    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &frame)) {
        memcpy(line, frame.p, frame.n);
        line[frame.n] = '\0';
        handle_command(conn, state, line);
    }
    return in.n - rest.n;
}

static int mailer_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    struct session *session = state;
    char text[1000];
    uint64_t number;

    (void)from;
    snprintf(text, sizeof(text), "%.*s", (int)message.n, (const char *)message.p);
    session->given++;
    if (text[0] == '#') {
        number = strtoull(text + 1, NULL, 10);
        session->disorder += session->last != 0 && session->last != number + 1;
        session->last = number > 1 ? number : 0;
        return 0;
    }
    say(conn, "got %s\n", text);
    if (strcmp(text, "die") == 0)
        fb_timer(conn, 1, DIE_MS);
    return strncmp(text, "no", 2) == 0 ? -1 : 0;
}

static void mailer_answered(fb_conn *conn, void *state, uint64_t number, fb_outcome outcome)
{
    struct session *session = state;

    (void)number;
    if (session->expected == 0) {
        say(conn, "%s\n", names[outcome]);
        return;
    }
    session->outcomes[outcome]++;
    if (--session->expected > 0)
        send_flood(conn, session);
    else
        say(conn,
            "%" PRIu64 " handled, %" PRIu64 " declined, %" PRIu64 " unknown, %" PRIu64 " busy\n",
            session->outcomes[FB_MESSAGE_HANDLED], session->outcomes[FB_MESSAGE_DECLINED],
            session->outcomes[FB_MESSAGE_UNKNOWN], session->outcomes[FB_MESSAGE_BUSY]);
}

static void mailer_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn;
    (void)state;
    (void)id;
    kill(getpid(), SIGKILL);
}

static const fb_directive directives[] = {
    { .name = "mailer", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = mailer_data,
    .timer = mailer_timer,
    .message = mailer_message,
    .answered = mailer_answered,
};

#ifdef MAILER_API
#define MAILER_HEADER                                                                              \
    .abi = FB_ABI, .api = MAILER_API, .size = offsetof(fb_protocol, writes) + sizeof(char **),     \
    .directive_size = sizeof(fb_directive)
#else
#define MAILER_HEADER FB_PROTOCOL_HEADER
#endif

FB_PROTOCOL(mailer) = {
    MAILER_HEADER,
    .name = "mailer",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct session),
    .ops = &ops,
};
