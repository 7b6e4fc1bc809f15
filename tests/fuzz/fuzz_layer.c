/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer of a connection with TLS, on a simulated socket. An input is a list of steps: bytes that
 * are no records, sealed records of any type and content, damaged ones, room for output, and acts
 * of an owner that echoes. All that is sent opens, and is the begin of the data that were said. */
#include "fuzz/input.h"
#include "tls/sealing.h"

#include <errno.h>

/* Bytes that a step adds at most, besides whole records of data. */
#define STEP_MOST 63

struct scene {
    struct fixture *fixture;
    struct owner *owner;
    struct sealing peer;
    size_t said; /* bytes of the pattern */
};

static void open_scene(struct scene *scene)
{
    static const struct owner echoing = { .data = owner_echo };

    *scene = (struct scene) { .fixture = sealing_start(FIXTURE_EDGE, 1) };
    scene->owner = owner_create(scene->fixture, &echoing);
    sealing_begin(&scene->peer, scene->owner);
    fixture_run(scene->fixture);
}

static void check_scene(struct scene *scene)
{
    sealing_look(&scene->peer);
    require(scene->peer.plain.n <= scene->said &&
                sealing_sent_pattern(&scene->peer, scene->peer.plain.n),
        "what was sent is the begin of what was said");
}

static void close_scene(struct scene *scene)
{
    struct sim_socket *socket = scene->owner->socket;

    sim_set_room(socket, SIZE_MAX);
    socket->send_most = SIZE_MAX;
    fixture_run(scene->fixture);
    check_scene(scene);
    if (scene->owner->conn != NULL)
        owner_abort(scene->owner);
    fixture_settle(scene->fixture);
    fixture_pass(scene->fixture, FIXTURE_LINGERING_MS);
    require(socket->closed, "the connection has ended");
    fixture_logged(scene->fixture);
    owner_free(&scene->owner);
    sealing_done(&scene->peer);
    sealing_stop(scene->fixture);
}

static void add_pattern(struct scene *scene, size_t n)
{
    n = n < SEALING_PATTERN - scene->said ? n : SEALING_PATTERN - scene->said;
    sealing_add_data(&scene->peer, sealing_pattern() + scene->said, n, TLS_PLAIN_MOST);
    scene->said += n;
}

/* A record with content of the input; data only of the pattern. */
static void add_record(struct scene *scene, struct input *in)
{
    uint8_t kind = next_byte(in), bytes[STEP_MOST];
    size_t n = next_byte(in) % sizeof(bytes);

    for (size_t i = 0; i < n; i++)
        bytes[i] = next_byte(in);
    if (kind != TLS_DATA)
        sealing_add(&scene->peer, kind % 8 == 0 ? kind : TLS_ALERT + kind % 2, bytes, n);
    else
        add_pattern(scene, n);
}

static void say_bytes(struct scene *scene, struct input *in)
{
    size_t n = next_byte(in) % STEP_MOST + 1;
    uint8_t bytes[STEP_MOST];

    for (size_t i = 0; i < n; i++)
        bytes[i] = next_byte(in);
    sim_say(scene->owner->socket, bytes, n);
}

static void act_as_owner(struct scene *scene, uint8_t act)
{
    struct fb_conn *conn = scene->owner->conn;

    if (conn == NULL)
        return;
    switch (act % 8) {
    case 0:
        conn_close(conn);
        break;
    case 1:
        conn_shutdown(conn);
        break;
    case 2:
    case 3:
        conn_stop(conn);
        break;
    default:
        conn_resume(conn);
    }
    fixture_settle(scene->fixture);
}

static void take_step(struct scene *scene, struct input *in, bool *ended)
{
    struct sealing *peer = &scene->peer;
    struct sim_socket *socket = scene->owner->socket;
    uint8_t what = next_byte(in), how = next_byte(in);

    switch (what % 16) {
    case 0:
        say_bytes(scene, in);
        break;
    case 1:
        if (peer->sealed.n > 0)
            peer->sealed.p[how * 31 % peer->sealed.n] ^= what;
        break;
    case 2:
        sim_set_room(socket, how < 128 ? how : SIZE_MAX);
        break;
    case 3:
        socket->send_most = how < 200 ? how + 1U : SIZE_MAX;
        break;
    case 4:
        act_as_owner(scene, how);
        break;
    case 5:
        *ended = how % 4 == 0;
        if (*ended)
            how < 128 ? sim_end(socket) : sim_reset(socket, ECONNRESET);
        break;
    case 6:
        sealing_add_update(peer, how % 2);
        break;
    case 7:
        sealing_add(peer, TLS_DATA, "", 0);
        break;
    case 8:
        add_pattern(scene, how * 257);
        break;
    case 9:
        sealing_add_alert(peer, how % 2 + 1, next_byte(in) % 4 == 0 ? 0 : TLS_USER_CANCELED);
        break;
    case 10:
    case 11:
        add_record(scene, in);
        break;
    default:
        sealing_say_pieces(peer, peer->sealed.n / (how < 128 ? 500 : 1) + how + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, data + size };
    struct scene scene;
    bool ended = false;

    open_scene(&scene);
    while (in.p < in.end && !ended) {
        take_step(&scene, &in, &ended);
        fixture_turn(scene.fixture);
        check_scene(&scene);
    }
    close_scene(&scene);
    return 0;
}
