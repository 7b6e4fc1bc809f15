/* SPDX-License-Identifier: BSD-2-Clause */
/* A life is a list of steps with deadlines, in a separate process. */
#include "daemon/hostile_seeds.h"

#include "base/compiler.h"

#include "daemon/abreast.h"
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/tls_client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS 4
#define ATTACK_MS 8000 /* an attacker hanging for longer is killed from outside */
#define TRY_MS 1000
#define CLIENTS_MAX 256
#define KEYS 64 /* in all parts of the map */
#define LOG_MOST 1000000
#define SHUTDOWN_MS 1000

/* A session with a worker. */
struct session {
    int fd; /* -1: none */
    pid_t worker;
};

struct life {
    const struct hostile_plan *plan;
    struct daemon *daemon;
    unsigned seed;
    bool stays;   /* the attacker lives until the reload */
    bool has_tls; /* workers have keepers */
    struct session sessions[WORKERS];
    unsigned victim;            /* index of the attacker's session */
    pid_t workers[2 * WORKERS]; /* and their keepers, after the reload */
};

static void begin_step(const struct life *life, const char *step)
{
    abreast_note("seed %u, %s", life->seed, step);
}

/* Sessions */

static void limit_wait(int fd, int ms)
{
    struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Sends a line, and reads a line without its end; false: none within the time. */
static bool ask(int fd, int ms, const char *line, char reply[256])
{
    size_t n = 0;
    int64_t until = now_ms() + ms;

    limit_wait(fd, ms);
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
        return false;
    while (n < 255 && recv(fd, reply + n, 1, 0) == 1 && now_ms() <= until)
        if (reply[n++] == '\n') {
            reply[n - 1] = '\0';
            return true;
        }
    return false;
}

/* Asks, and fails if no reply comes in time, or a wrong reply; NULL: any. */
static const char *expect_reply(struct life *life, const struct session *session,
    const char *expected, const char *format, ...) __attribute__((format(printf, 4, 5)));

static const char *expect_reply(
    struct life *life, const struct session *session, const char *expected, const char *format, ...)
{
    static char reply[256];
    char line[256];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (!ask(session->fd, (int)life->plan->serve_ms, line, reply))
        abreast_fail("worker %d does not answer \"%.*s\" within %u ms", (int)session->worker,
            (int)strcspn(line, "\n"), line, life->plan->serve_ms);
    if (expected != NULL && strcmp(reply, expected) != 0)
        abreast_fail("worker %d answers \"%s\" to \"%.*s\"", (int)session->worker, reply,
            (int)strcspn(line, "\n"), line);
    return reply;
}

/* A session with any worker, or by proxy, or false if not accepted in time. */
static bool try_session_at(struct session *session, in_port_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    char reply[256];

    session->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limit_wait(session->fd, TRY_MS);
    if (connect(session->fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        ask(session->fd, TRY_MS, "pid\n", reply) && (session->worker = atoi(reply)) > 0)
        return true;
    close(session->fd);
    session->fd = -1;
    return false;
}

static bool try_session(struct life *life, struct session *session)
{
    return try_session_at(session, life->daemon->ports[0]);
}

static bool is_new(const struct life *life, pid_t worker)
{
    for (unsigned i = 0; i < WORKERS; i++)
        if (life->sessions[i].fd != -1 && life->sessions[i].worker == worker)
            return false;
    return true;
}

static unsigned free_session(const struct life *life)
{
    unsigned i = 0;

    while (i < WORKERS && life->sessions[i].fd != -1)
        i++;
    return i;
}

/* Opens a session with every worker; sessions that miss the wanted worker fill up the rest. */
static void open_sessions(struct life *life)
{
    int more[CLIENTS_MAX];
    unsigned more_n = 0, place;
    int64_t until = deadline_ms();

    while ((place = free_session(life)) < WORKERS) {
        struct session session;

        if (now_ms() > until)
            abreast_fail("no session with %u of the workers", WORKERS - place);
        if (!try_session(life, &session))
            continue;
        if (is_new(life, session.worker))
            life->sessions[place] = session;
        else if (more_n < CLIENTS_MAX)
            more[more_n++] = session.fd;
        else
            close(session.fd);
    }
    while (more_n > 0)
        close(more[--more_n]);
}

static void close_sessions(struct life *life)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        if (life->sessions[i].fd != -1)
            close(life->sessions[i].fd);
        life->sessions[i].fd = -1;
    }
}

/* Steps */

static void start_daemon(struct life *life)
{
    static const char *const ways[][2] = { { "use poll; accept_mutex on;", "" },
        { "accept_mutex off;", "" }, { "accept_mutex off;", "reuseport" } };
    static const char *const balancers[] = { "", "least_conn;", "least_time first_byte;",
        "random two;", "hash $remote_port consistent;" };
    unsigned way = life->seed % 3;

    begin_step(life, "start");
    life->daemon = daemon_create(3);
    if (life->has_tls)
        tls_client_make_files(life->daemon);
    daemon_expects(life->daemon, "[alert]");
    daemon_expects(life->daemon, "[crit]");
    daemon_expects(life->daemon, "ssertion"); /* the attacker's own */
    daemon_expects(life->daemon, "stands twice in upstream");
    daemon_configure(life->daemon,
        "load_module " MODULES_PATH "/attacker.so; worker_processes %d;\n"
        "worker_shutdown_timeout %dms; %s\n"
        "events { worker_connections 24; accept_mutex_delay 100ms; %s }\n"
        "stream { server { listen 127.0.0.1:$0 %s; attacker; }\n"
        "upstream u { zone u 64k; %s server 127.0.0.1:$0 max_conns=20 fail_timeout=100ms;\n"
        "server [::ffff:127.0.0.1]:$0 weight=5 max_fails=0; }\n"
        "server { listen 127.0.0.1:$1 %s; proxy_pass u; health_check interval=100ms; } %s}\n",
        WORKERS, SHUTDOWN_MS, life->seed % 4 == 3 ? "sandbox strict;" : "", ways[way][0],
        ways[way][1], balancers[life->seed % countof(balancers)], ways[way][1],
        life->has_tls ? TLS_CLIENT_SERVER("$2") : "");
    daemon_start(life->daemon);
    for (unsigned i = 0; i < WORKERS; i++)
        life->sessions[i].fd = -1;
    open_sessions(life);
    for (unsigned key = 0; key < KEYS; key++)
        expect_reply(life, &life->sessions[key % WORKERS], "ok", "set %u at first\n", key);
}

/* Waits until the attack is over: a second session with the worker answers, or the worker has
 * gone. */
static void attack(struct life *life)
{
    struct session attacker, spare[CLIENTS_MAX];
    unsigned spare_n = 0;
    pid_t victim;
    char line[64];

    begin_step(life, "attack");
    life->victim = life->seed / 3 % WORKERS;
    victim = life->sessions[life->victim].worker;
    attacker = life->sessions[life->victim];
    for (int64_t until = deadline_ms();;) {
        struct session session;

        if (now_ms() > until)
            abreast_fail("no second session with the attacker");
        if (!try_session(life, &session))
            continue;
        spare[spare_n++] = session;
        if (session.worker == victim || spare_n == CLIENTS_MAX)
            break;
    }
    snprintf(line, sizeof(line), "attack %u %u\n", life->seed, life->plan->writes);
    client_send(attacker.fd, line);
    begin_step(life, "the attack's end");
    snprintf(line, sizeof(line), "pid\n%s", life->stays ? "" : "die\n");
    client_send(spare[spare_n - 1].fd, line);
    for (int64_t until = now_ms() + ATTACK_MS; proc_state(victim) != 0; pause_briefly()) {
        struct pollfd end = { .fd = spare[spare_n - 1].fd, .events = POLLIN };

        if (life->stays && poll(&end, 1, 0) == 1)
            break;
        if (now_ms() > until)
            kill(victim, SIGKILL);
    }
    while (spare_n > 0)
        close(spare[--spare_n].fd);
}

/* Honest workers use all shared objects, and may find them empty or full, but answer. */
static void check_others(struct life *life, const char *step)
{
    begin_step(life, step);
    for (unsigned i = 0; i < WORKERS; i++) {
        if (i == life->victim)
            continue;
        expect_reply(life, &life->sessions[i], NULL, "count\n");
        for (unsigned key = 0; key < KEYS; key++)
            expect_reply(life, &life->sessions[i], NULL, "get %u\n", key);
        expect_reply(life, &life->sessions[i], NULL, "set %u later\n", i);
    }
}

/* A new client is served; unlucky clients try again. */
static void check_new_client(struct life *life)
{
    struct session session;
    int64_t until = now_ms() + life->plan->serve_ms + TRY_MS;

    begin_step(life, "a new client");
    while (!try_session(life, &session))
        if (now_ms() > until)
            abreast_fail("no new client is served within %u ms", life->plan->serve_ms);
    close(session.fd);
}

/* A client is served by way of a group, of whose servers the attacker may have said anything: what
 * is wrong is found out by the next checks. */
static void check_proxied_client(struct life *life, const char *step)
{
    struct session session;
    int64_t until = now_ms() + life->plan->serve_ms + TRY_MS;

    begin_step(life, step);
    while (!try_session_at(&session, life->daemon->ports[1]))
        if (now_ms() > until)
            abreast_fail("no proxied client is served within %u ms", life->plan->serve_ms);
    close(session.fd);
}

/* A client shakes hands, though not with the keeper of the attacker. */
static void check_tls_client(struct life *life, const char *step)
{
    struct tls_client client;
    int64_t until = now_ms() + life->plan->serve_ms + TRY_MS;

    if (!life->has_tls)
        return;
    begin_step(life, step);
    while (!tls_client_begin(&client, life->daemon->ports[2]))
        if (now_ms() > until)
            abreast_fail("no client has TLS within %u ms", life->plan->serve_ms);
    tls_client_echo(&client, "by TLS");
    tls_client_end(&client);
}

static struct json_value ask_master(struct life *life, const char *command)
{
    struct json_value answer = control_ask(life->daemon, command);

    if (!control_is_ok(answer))
        abreast_fail("%.*s", (int)answer.n, answer.text);
    return answer;
}

static void check_status(struct life *life)
{
    int64_t begun = now_ms();

    begin_step(life, "status");
    ask_master(life, "status");
    if (now_ms() - begun > life->plan->serve_ms)
        abreast_fail("it took %" PRId64 " ms", now_ms() - begun);
}

static bool is_whole(struct life *life)
{
    unsigned n = life->has_tls ? 2 * WORKERS : WORKERS;

    return control_count(control_ask(life->daemon, "status"), "generations") == 1 &&
           proc_children(life->daemon->pid, life->workers, n) == n &&
           proc_child_n(life->daemon->pid) == n;
}

static void reload(struct life *life)
{
    int64_t until;

    begin_step(life, "reload");
    close_sessions(life);
    ask_master(life, "reload");
    begin_step(life, "the old generation's end");
    until = now_ms() + SHUTDOWN_MS + 1000 + life->plan->serve_ms;
    while (!is_whole(life)) {
        if (now_ms() > until)
            abreast_fail("%u children are left", proc_child_n(life->daemon->pid));
        pause_briefly();
    }
}

/* Values set from now on stay, and all workers see them, despite unnoticed damage. */
static void check_map(struct life *life)
{
    begin_step(life, "the map after the reload");
    for (unsigned key = 0; key < KEYS; key++)
        expect_reply(life, &life->sessions[key % WORKERS], "ok", "set %u any\n", key);
    for (unsigned i = 0; i < WORKERS; i++)
        expect_reply(life, &life->sessions[i], "ok", "set key%u value%u\n", i, life->seed + i);
    for (unsigned i = 0; i < WORKERS * WORKERS; i++) {
        char value[32];
        const char *reply =
            expect_reply(life, &life->sessions[i / WORKERS], NULL, "get key%u\n", i % WORKERS);

        snprintf(value, sizeof(value), "value%u", life->seed + i % WORKERS);
        if (strcmp(reply, value) != 0)
            abreast_fail("a key has \"%s\" instead of \"%s\"", reply, value);
    }
    for (unsigned key = 0; key < KEYS; key++)
        expect_reply(life, &life->sessions[(key + 1) % WORKERS], "any", "get %u\n", key);
}

/* Workers add 1 in turn, and see all additions. */
static void check_metric(struct life *life)
{
    long before = 0;

    begin_step(life, "the metric after the reload");
    for (unsigned i = 0; i < WORKERS; i++) {
        long now = atol(expect_reply(life, &life->sessions[i], NULL, "count\n"));

        if (i > 0 && now != before + 1)
            abreast_fail("the total is %ld after %ld", now, before);
        before = now;
    }
}

/* Sent by each worker to the next. */
static void check_messages(struct life *life)
{
    static const char message[] = "got text\n";

    begin_step(life, "messages after the reload");
    for (unsigned i = 0; i < WORKERS; i++) {
        const struct session *next = &life->sessions[(i + 1) % WORKERS];
        char line[128], received[sizeof(message)] = "";

        snprintf(line, sizeof(line), "send %.64s text\n", expect_reply(life, next, NULL, "ref\n"));
        client_send(life->sessions[i].fd, line);
        limit_wait(next->fd, (int)life->plan->serve_ms);
        if (recv(next->fd, received, strlen(message), MSG_WAITALL) != (ssize_t)strlen(message) ||
            strcmp(received, message) != 0)
            abreast_fail("\"%s\" is the message from worker %d to worker %d", received,
                (int)life->sessions[i].worker, (int)next->worker);
    }
}

static void check_numbers(struct life *life)
{
    int64_t until = now_ms() + life->plan->serve_ms, active;

    begin_step(life, "the numbers after the reload");
    while ((active = control_number(json_member(ask_master(life, "status"), "totals"), "active")) !=
           WORKERS) {
        if (now_ms() > until)
            abreast_fail("%" PRId64 " clients instead of %d", active, WORKERS);
        pause_briefly();
    }
    for (unsigned i = 0; i < WORKERS; i++)
        if (!proc_has(life->workers, 2 * WORKERS, life->sessions[i].worker))
            abreast_fail("worker %d has been replaced", (int)life->sessions[i].worker);
}

/* Reports of the attacker's own faults are not the daemon's. */
static void forget_report(const struct life *life, pid_t worker)
{
    char name[64];

    snprintf(name, sizeof(name), RESOURCES_REPORTS "/report.%d", (int)worker);
    unlink(daemon_path(life->daemon, name));
}

static void end_daemon(struct life *life, pid_t attacker)
{
    int64_t begun;
    struct stat st;

    begin_step(life, "TERM");
    begun = now_ms();
    daemon_stop(life->daemon, SIGTERM);
    if (now_ms() - begun > life->plan->serve_ms + 1000)
        abreast_fail("it took %" PRId64 " ms", now_ms() - begun);
    close_sessions(life);
    begin_step(life, "what is left");
    if (stat(daemon_path(life->daemon, "error.log"), &st) == 0 && st.st_size > LOG_MOST)
        abreast_fail("the log has %jd bytes", (intmax_t)st.st_size);
    forget_report(life, attacker);
    daemon_finish(life->daemon);
}

static void live_once(struct life *life)
{
    pid_t attacker;

    life->stays = life->seed % 5 == 4;
    life->has_tls = HAVE_OPENSSL && life->seed / 4 % 2 == 0;
    start_daemon(life);
    attack(life);
    attacker = life->sessions[life->victim].worker;
    check_others(life, "the others after the attack");
    check_status(life);
    if (!life->stays)
        check_new_client(life);
    if (!life->stays)
        check_proxied_client(life, "a proxied client");
    if (!life->stays)
        check_tls_client(life, "a client with TLS");
    check_others(life, "the others after the status");
    reload(life);
    begin_step(life, "clients after the reload");
    open_sessions(life);
    check_map(life);
    check_metric(life);
    check_messages(life);
    check_numbers(life);
    check_tls_client(life, "a client with TLS after the reload");
    end_daemon(life, attacker);
}

static void live(void *arg, unsigned i)
{
    const struct hostile_plan *plan = arg;
    struct life life = { .plan = plan, .seed = plan->first + i };

    begin_step(&life, "start");
    live_once(&life);
}

void hostile_seeds(const struct hostile_plan *plan)
{
    abreast_run(plan->n, plan->lives, live, (void *)plan);
}
