/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions through groups of all kinds, of one or two workers: clients, servers, names, memory,
 * descriptors, workers and operators act at random, and in any case nothing is left.
 * FORKBEARD_TEST_SEED is the first seed, and the only one unless FORKBEARD_TEST_SEEDS sets a
 * number. */
#include "kit/kit.h"
#include "support/random.h"
#include "support/test.h"
#include "upstream/zone.h"

#include "base/compiler.h"

#include <errno.h>
#include <forkbeard/test.h>
#include <stdlib.h>

#define CLIENTS 24
#define PEERS 24
#define STEPS 200

extern const fb_protocol fb_protocol_proxy;

static const char *const addresses[] = { "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80",
    "10.0.0.4:80" };

/* A group with every balancer, with and without a zone, a queue, names. Sessions leave failed
 * servers. */
static const char stream[] =
    "resolver 10.0.0.53 valid=1s; resolver_timeout 2s; match m { send hi; expect ho; }"
    "proxy_session_drop on;"
    "upstream a { zone a 256k; proxy_session_drop on over=2s; server 10.0.0.1:80 max_conns=1; "
    "server 10.0.0.2:80 max_conns=2;"
    "  server 10.0.0.3:80 backup max_conns=1; queue 3 timeout=2s; }"
    "upstream b { least_conn; server a.test:80 resolve; server 10.0.0.2:80 slow_start=5s;"
    "  server 10.0.0.3:80 max_fails=2 fail_timeout=1s; queue 2 timeout=500ms; }"
    "upstream c { zone c 256k; hash $remote_port consistent; server 10.0.0.1:80;"
    "  server b.test service=_x._tcp resolve; server 10.0.0.4:80 weight=100; }"
    "upstream d { zone d 256k; least_time first_byte inflight; server 10.0.0.1:80;"
    "  server a.test:80 resolve max_conns=1; server 10.0.0.4:80 drain; queue 1 timeout=1ms; }"
    "upstream e { random two; server 10.0.0.1:80 down; server 10.0.0.2:80; server c.test:80; }";

static const char *const servers[] = {
    "proxy_pass a; health_check interval=1s; proxy_half_close on;",
    "proxy_pass b; proxy_socket_keepalive on; proxy_upload_rate 100;",
    "proxy_pass c; health_check interval=700ms match=m; proxy_protocol on;",
    "proxy_pass d; proxy_bind 10.1.1.1; proxy_download_rate 50; proxy_next_upstream_tries 2;",
    "proxy_pass e; proxy_protocol on version=2; proxy_connect_timeout 300ms;",
    "set $a $remote_port; set $to a.test:80; proxy_pass $to; proxy_half_close on;",
};

static const char *const records[] = { "a.test 1 A 10.0.0.1", "a.test 1 A 10.0.0.3",
    "b.test 1 A 10.0.0.2", "_x._tcp.b.test 1 SRV 1 5 80 a.test",
    "_x._tcp.b.test 1 SRV 2 5 80 b.test", "c.test 1 CNAME a.test" };

/* A client, or a server's end of a connection. */
struct end {
    fb_test_peer *peer;
    bool ended; /* the client sends nothing more */
};

struct scene {
    fb_test *test;
    uint64_t random;
    unsigned workers;
    bool lives[2];
    struct end clients[CLIENTS], peers[PEERS];
    unsigned client_n, peer_n;
};

static uint32_t below(struct scene *scene, uint32_t n)
{
    return random_below(&scene->random, n);
}

static struct end *any_end(struct scene *scene)
{
    if (scene->peer_n > 0 && below(scene, 2) == 0)
        return &scene->peers[below(scene, scene->peer_n)];
    return scene->client_n > 0 ? &scene->clients[below(scene, scene->client_n)] : NULL;
}

static void connect_client(struct scene *scene)
{
    unsigned worker = below(scene, 2);

    if (scene->client_n == CLIENTS)
        return;
    if (scene->workers == 0)
        scene->clients[scene->client_n++].peer = fb_test_connect(scene->test);
    else if (scene->lives[worker])
        scene->clients[scene->client_n++].peer = fb_test_connect_to(scene->test, worker, 0);
}

static void accept_server(struct scene *scene)
{
    const char *address = addresses[below(scene, countof(addresses))];
    fb_test_server *server = fb_test_serve(scene->test, address, FB_TEST_ACCEPTS);
    fb_test_peer *peer = fb_test_accept(server);

    if (peer != NULL && scene->peer_n < PEERS)
        scene->peers[scene->peer_n++].peer = peer;
}

static void act(struct scene *scene, struct end *end)
{
    static const char bytes[5000] = "ho";

    if (end == NULL || end->ended)
        return;
    switch (below(scene, 6)) {
    case 0:
        fb_test_shut(end->peer);
        end->ended = true;
        break;
    case 1:
        fb_test_reset(end->peer);
        end->ended = true;
        break;
    case 2:
        fb_test_take(end->peer, below(scene, 2) == 0 ? SIZE_MAX : below(scene, 100));
        break;
    default:
        fb_test_say(end->peer, bytes, 1 + below(scene, below(scene, 2) == 0 ? 10 : sizeof(bytes)));
    }
}

static void change_worker(struct scene *scene)
{
    unsigned worker = below(scene, 2);

    if (scene->workers == 0)
        return;
    if (!scene->lives[worker])
        scene->lives[worker] = fb_test_replace(scene->test, worker) == 0;
    else if (below(scene, 2) == 0) {
        fb_test_kill(scene->test, worker);
        scene->lives[worker] = false;
    }
}

/* Sets the state of a server of the first group. */
static void say(struct scene *scene)
{
    const struct worker *worker = &scene->test->workers[0].worker;

    if (scene->lives[0])
        upstream_operator_set(STAILQ_FIRST(worker->stream.upstreams.list),
            addresses[below(scene, countof(addresses))], (enum upstream_operator)below(scene, 4),
            worker->stream.net.loop.clock.mono_ms);
}

static void take_step(struct scene *scene)
{
    switch (below(scene, 26)) {
    case 0:
        fb_test_serve(scene->test, addresses[below(scene, countof(addresses))],
            (fb_test_reply)below(scene, 3));
        break;
    case 1:
        fb_test_names(scene->test, (fb_test_reply)below(scene, 3));
        break;
    case 2:
        fb_test_name(scene->test, records[below(scene, countof(records))]);
        break;
    case 3:
        fb_test_refuse_memory(scene->test, below(scene, 30), below(scene, 4));
        break;
    case 4:
        scene->test->sim->connect_error = below(scene, 2) == 0 ? EMFILE : 0;
        break;
    case 5:
        change_worker(scene);
        break;
    case 24:
        say(scene);
        break;
    case 6:
    case 7:
        fb_test_run(scene->test);
        break;
    case 8:
    case 9:
    case 10:
        fb_test_pass(scene->test, below(scene, below(scene, 2) == 0 ? 20 : 3000));
        break;
    case 11:
    case 12:
    case 13:
    case 14:
        accept_server(scene);
        break;
    case 15:
    case 16:
    case 17:
    case 18:
        connect_client(scene);
        break;
    default:
        act(scene, any_end(scene));
    }
}

/* Clients go, and time passes: no connection is left but those of checks. */
static void finish(struct scene *scene)
{
    fb_test_refuse_memory(scene->test, 0, 0);
    scene->test->sim->connect_error = 0;
    for (unsigned i = 0; i < scene->client_n; i++)
        fb_test_reset(scene->clients[i].peer);
    fb_test_run(scene->test);
    if (below(scene, 2) == 0)
        fb_test_drain(scene->test, below(scene, 2) * 1000);
    fb_test_pass(scene->test, 10000);
    ck_assert_int_eq(fb_test_end(&scene->test), 0);
}

static void run(unsigned seed)
{
    struct scene scene = { .random = seed, .lives = { true, true } };
    fb_test_options options = {
        .size = sizeof(options), .stream = stream, .log_format = "$status $upstream_addr"
    };

    scene.workers = below(&scene, 2) * 2;
    options.workers = scene.workers;
    options.server = servers[below(&scene, countof(servers))];
    options.trouble = below(&scene, 2);
    options.worker_connections = below(&scene, 2) == 0 ? 8 : 0;
    options.seed = seed;
    scene.test = fb_test_start_with(&fb_protocol_proxy, &options);
    ck_assert_ptr_nonnull(scene.test);
    for (int i = 0; i < STEPS; i++)
        take_step(&scene);
    finish(&scene);
}

START_TEST(anything_may_happen)
{
    const char *first = getenv("FORKBEARD_TEST_SEED"), *n = getenv("FORKBEARD_TEST_SEEDS");
    unsigned from = first != NULL ? (unsigned)atoi(first) : 1, seeds = first != NULL ? 1 : 100;

    if (n != NULL)
        seeds = (unsigned)atoi(n);
    for (unsigned i = 0; i < seeds; i++) {
        unsigned seed = from + i;

        fprintf(stderr, "seed %u\n", seed);
        run(seed);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, anything_may_happen);
}

TEST_MAIN("sessions_random", add_tests)
