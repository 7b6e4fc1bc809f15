/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's reading of its channel and of other workers' messages: a worker on the real
 * kernel, with a client that has a reference, kept from input to input. An input is a list of
 * steps: bytes and messages for the channel, packets for the inbox, forged at every field,
 * replies of a master, messages of its own to references of possibly nobody; and in the end a
 * forged message or packet. */
#include "fuzz/fuzz.h"
#include "support/fixture_worker.h"
#include "worker/messages.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_WORDS 5 /* number, from, to, the mark of the protocol, outcome */
#define PRESENT_MAX 4096
#define UNANSWERED_MAX 200

struct scene {
    struct fixture *fixture;
    fb_conn *conn;
    int inbox; /* the senders' end, or -1 */
    int null;
    uint64_t number; /* the latest message of our own */
};

/* Workers announced to us, and not gone since. */
static fb_ref present[PRESENT_MAX];
static unsigned present_n;

static int receive_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)conn;
    (void)state;
    if (from == 0 || message.n > FB_MESSAGE_MAX)
        abort();
    return message.n > 0 ? message.p[0] % 2 : 0;
}

static void receive_outcome(fb_conn *conn, void *state, uint64_t number, fb_outcome outcome)
{
    (void)conn;
    (void)state;
    if (number == 0 || outcome < FB_MESSAGE_HANDLED || outcome > FB_MESSAGE_BUSY)
        abort();
}

static int receive_for_worker(fb_worker *worker, void *state, fb_ref from, fb_bytes message)
{
    (void)worker;
    (void)state;
    if (from == 0 || message.n > FB_MESSAGE_MAX)
        abort();
    return message.n > 0 ? message.p[0] % 2 : 0;
}

static void receive_answer(fb_worker *worker, void *state, const fb_answer *answer)
{
    (void)worker;
    receive_outcome(NULL, state, answer->message, answer->outcome);
    if (answer->left > PRESENT_MAX)
        abort();
}

static unsigned find_present(fb_ref id)
{
    unsigned i = 0;

    while (i < present_n && present[i] != id)
        i++;
    return i;
}

static void note_came(fb_worker *worker, void *state, fb_ref id)
{
    (void)state;
    if (find_present(id) < present_n || id == fb_worker_id(worker) || present_n == PRESENT_MAX)
        abort();
    present[present_n++] = id;
}

static void note_gone(fb_worker *worker, void *state, fb_ref id)
{
    unsigned i = find_present(id);

    (void)worker;
    (void)state;
    if (i == present_n)
        abort();
    present[i] = present[--present_n];
}

static void send_to_worker(struct scene *scene, uint32_t kind, uint32_t argument, int fd)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = fd };

    if (kind != 0)
        channel_send(scene->fixture->master, &message);
}

/* Runs a turn with an event to wait for. */
static void turn(struct scene *scene)
{
    send_to_worker(scene, MESSAGE_RESCAN, 0, -1);
    worker_turn(scene->fixture->worker);
    worker_check(scene->fixture->worker);
}

static void connect_client(struct scene *scene)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    int listener = scene->fixture->listener->fds[0];

    if (getsockname(listener, (struct sockaddr *)&address, &length) == -1 ||
        connect(client, (struct sockaddr *)&address, length) == -1)
        abort();
    send_to_worker(scene, MESSAGE_ACCEPT, 0, -1);
    for (int i = 0; i < 1000 && scene->fixture->server.record.openings == 0; i++)
        turn(scene);
    scene->conn = scene->fixture->server.record.conn;
    if (scene->conn == NULL || fb_ref_of(scene->conn) == 0)
        abort();
}

static struct scene *build(void)
{
    static const fb_worker_ops worker_ops = {
        .size = sizeof(worker_ops),
        .message = receive_for_worker,
        .answered = receive_answer,
        .worker_came = note_came,
        .worker_gone = note_gone,
    };
    static struct scene scene = { .inbox = -1 };
    struct fixture_worker_options options = { .connections = 16, .processes = 2 };
    unsigned index;
    fb_ops *ops;

    options.mechanism = mechanism_find(NULL);
    scene.fixture = fixture_prepare_worker(&options);
    index = scene.fixture->server.server.protocol_index;
    ops = &scene.fixture->server.ops;
    ops->size = sizeof(*ops);
    ops->message = receive_message;
    ops->answered = receive_outcome;
    scene.fixture->server.protocol.worker_ops = &worker_ops;
    scene.fixture->worker->protocols[index] = (struct fb_worker) {
        .worker = scene.fixture->worker,
        .index = index,
        .protocol = &scene.fixture->server.protocol,
        .started = true,
        .mark = 0x6d61726b,
    };
    scene.null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    send_to_worker(&scene, MESSAGE_LOG_FILE, 0, scene.null);
    connect_client(&scene);
    return &scene;
}

static void give_inbox(struct scene *scene)
{
    int ends[2];

    if (channel_open_inbox(ends) == -1)
        abort();
    send_to_worker(scene, MESSAGE_INBOX, 0, ends[0]);
    close(ends[0]);
    if (scene->inbox != -1)
        close(scene->inbox);
    scene->inbox = ends[1];
    turn(scene);
}

/* Sends a packet whose head says mostly what could be true, with a body of some length; false: the
 * inbox is full, or gone. */
static bool forge_packet(struct scene *scene, const uint8_t *p)
{
    fb_worker *handle = fb_worker_of(scene->conn);
    uint64_t id = fb_worker_id(handle), mark = handle->mark;
    static uint8_t packet[HEAD_WORDS * 8 + FB_MESSAGE_MAX + 8];
    uint64_t own = fb_ref_of(scene->conn), other = own ^ UINT64_C(1) << 41;
    uint64_t worker = id ^ (uint64_t)(p[1] % 4) << 40;
    uint64_t froms[] = { other, other, worker, own, worker + p[2] % 2,
        own ^ UINT64_C(0x123456) << 40, p[1], ~own };
    uint64_t tos[] = { own, own, id, own + p[1], other, id + 1, ~own, own };
    uint64_t outcomes[] = { 0, 0, 0, 129, p[1] % 6, 128, 129, ~UINT64_C(0) };
    uint64_t marks[] = { mark, mark, mark, p[1] };
    size_t lengths[] = { 8, 8, 0, 7, p[1], FB_MESSAGE_MAX, FB_MESSAGE_MAX + 1, 300 };
    uint64_t head[HEAD_WORDS] = { scene->number - p[2] % 4, froms[p[0] % 8], tos[p[1] % 8],
        marks[p[1] / 8 % 4], outcomes[p[0] / 8 % 8] };

    memcpy(packet, head, sizeof(head));
    memcpy(packet + sizeof(head), &mark, sizeof(mark)); /* a greeting, or any message */
    packet[sizeof(head)] ^= p[2] / 128;
    return send(scene->inbox, packet, sizeof(head) + lengths[p[2] / 4 % 8],
               MSG_DONTWAIT | MSG_NOSIGNAL) != -1;
}

/* Replies to requests for inboxes: with an inbox without a reader, or with a closed peer, or with
 * none. */
static void play_master(struct scene *scene, unsigned how)
{
    struct channel_message message;

    while (channel_receive(scene->fixture->master, &message) == CHANNEL_DONE) {
        int ends[2];

        if (message.kind != MESSAGE_INBOX_WANTED || how % 4 == 3)
            continue;
        if (how % 4 == 0) {
            send_to_worker(scene, MESSAGE_SIBLING_GONE, message.argument, -1);
            continue;
        }
        if (channel_open_inbox(ends) == -1)
            abort();
        if (how % 4 == 1)
            close(ends[0]);
        send_to_worker(scene, MESSAGE_SIBLING_INBOX, message.argument, ends[1]);
        close(ends[1]);
        if (how % 4 == 2) /* until full, or until the peer goes */
            close(ends[0]);
    }
}

static void send_own(struct scene *scene, const uint8_t *p)
{
    static const uint8_t text[FB_MESSAGE_MAX];
    fb_ref to = fb_ref_of(scene->conn) ^ (uint64_t)(p[0] % 16) << 40;
    fb_worker *worker = fb_worker_of(scene->conn);
    size_t n = p[1] % 2 == 0 ? p[1] : sizeof(text);
    uint64_t number;

    if (p[0] >= 128)
        number = fb_send_message(scene->conn, to, text, n);
    else if (worker->unanswered > UNANSWERED_MAX) /* a check of so many is slow */
        return;
    else
        number = p[0] < 64 ? fb_send_all(worker, text, n) : fb_send_worker(worker, to, text, n);
    scene->number = number != 0 ? number : scene->number;
    net_flush(&scene->fixture->worker->stream.net);
}

/* Sends a message or a packet; the worker is sure to read a part. */
static void forge_one(struct scene *scene, const uint8_t *p)
{
    uint32_t words[3] = { p[1] % 20, p[2] % 2 == 0 ? p[3] % 16 : (uint32_t)p[3] << 24 | p[2] };
    size_t n = p[2] < 0xe0 ? 2 * sizeof(words[0]) : p[2] % (sizeof(words) + 1);

    if (p[0] % 2 == 0) {
        send(scene->fixture->master, words, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (scene->inbox == -1 || !forge_packet(scene, p + 1)) {
        give_inbox(scene);
        forge_packet(scene, p + 1);
    }
}

static size_t take_step(struct scene *scene, const uint8_t *p, size_t n)
{
    size_t length = p[1] % 64 < n - 2 ? p[1] % 64 : n - 2;
    uint32_t own = (uint32_t)(fb_ref_of(scene->conn) >> 40);

    switch (p[0] % 16) {
    case 0:
        send(scene->fixture->master, p + 2, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        return length + 2;
    case 1:
        send(scene->inbox, p + 2, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        return length + 2;
    case 2:
        send_to_worker(scene, p[1] % 16, own ^ p[2] % 16, -1);
        break;
    case 3:
        send_to_worker(scene, MESSAGE_LOG_FILE, p[1] % 2, scene->null);
        break;
    case 4:
        give_inbox(scene);
        break;
    case 5:
        if (scene->inbox != -1 && p[1] % 8 == 0)
            shutdown(scene->inbox, p[2] % 3);
        break;
    case 6:
    case 7:
        play_master(scene, p[1]);
        break;
    case 8:
    case 9:
        send_own(scene, p + 1);
        break;
    default:
        forge_packet(scene, p + 1);
        break;
    }
    return 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scene *scene;
    const uint8_t *first = data;
    bool forged = size >= 4;

    if (scene == NULL)
        scene = build();
    while (size >= 4) {
        size_t n = take_step(scene, data, size);

        turn(scene);
        data += n;
        size -= n;
    }
    if (forged) {
        forge_one(scene, first);
        turn(scene);
    }
    return 0;
}
