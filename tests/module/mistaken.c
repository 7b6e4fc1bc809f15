/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that makes a mistake named by a client (mistakes.def), as a trial of the checked mode.
 * Some mistakes come later, by a timer of the worker. Directives make the mistakes of the
 * configuration and of the master. */
#include "mistaken.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static const char *const mistaken_places[] = { "nowhere", "conf_done", "conf_accepted", NULL };

static const fb_ops no_ops = { .size = sizeof(fb_ops) };

struct mistaken_worker *mistaken_own(fb_conn *conn)
{
    return fb_worker_state(conn);
}

void mistaken_make_later(fb_conn *conn, void (*later)(fb_worker *worker))
{
    mistaken_own(conn)->later = later;
    fb_worker_timer(fb_worker_of(conn), 1, 1);
}

void mistaken_read_kept(fb_worker *worker)
{
    const struct mistaken_worker *state = fb_own_state(worker);

    if (state->kept[0] == 'x')
        fb_worker_logf(worker, FB_LOG_INFO, "an x was kept");
}

void mistaken_ignore(void *arg)
{
    (void)arg;
}

/* ---- Handles ---- */

static void write_old(fb_worker *worker)
{
    fb_write(((struct mistaken_worker *)fb_own_state(worker))->old, "x", 1);
}

void mistake_ended_write(fb_conn *conn, fb_bytes in)
{
    (void)in;
    mistaken_own(conn)->old = conn;
    fb_close(conn);
    mistaken_make_later(conn, write_old);
}

static void set_timer_of_old(fb_worker *worker)
{
    fb_timer(((struct mistaken_worker *)fb_own_state(worker))->old, 1, 1);
}

void mistake_ended_timer(fb_conn *conn, fb_bytes in)
{
    (void)in;
    mistaken_own(conn)->old = conn;
    fb_abort(conn);
    mistaken_make_later(conn, set_timer_of_old);
}

/* The next client closes it. */
void mistake_reused_slot(fb_conn *conn, fb_bytes in)
{
    (void)in;
    mistaken_own(conn)->old = conn;
    fb_abort(conn);
}

void mistake_null_conn(fb_conn *conn, fb_bytes in)
{
    (void)conn;
    fb_write(NULL, in.p, in.n);
}

void mistake_stray_conn(fb_conn *conn, fb_bytes in)
{
    char stray[64];

    (void)conn, (void)in;
    fb_stop((fb_conn *)(void *)stray);
}

void mistake_worker_as_conn(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_close((fb_conn *)(void *)fb_worker_of(conn));
}

void mistaken_run_nothing(fb_worker *worker, void *work)
{
    (void)worker, (void)work;
}

void mistake_conn_as_worker(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_post((fb_worker *)(void *)conn, mistaken_run_nothing, NULL, 0);
}

void mistake_null_worker(fb_conn *conn, fb_bytes in)
{
    (void)conn, (void)in, fb_wall_ms(NULL);
}

static void watch_is_ready(fb_worker *worker, fb_watch *watch, unsigned events, void *arg)
{
    (void)worker, (void)watch, (void)events, (void)arg;
}

void mistake_watch_ended(fb_conn *conn, fb_bytes in)
{
    int ends[2];
    fb_watch *watch;

    (void)in;
    if (pipe(ends) == -1)
        return;
    watch = fb_watch_fd(fb_worker_of(conn), ends[0], FB_WATCH_READ, watch_is_ready, NULL);
    fb_unwatch(watch);
    close(ends[0]);
    close(ends[1]);
    fb_watch_set(watch, 0);
}

fb_map *mistaken_map(const fb_conn *conn)
{
    return ((const struct mistaken *)fb_conf_of(conn))->map;
}

void mistake_map_as_watch(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_unwatch((fb_watch *)(void *)mistaken_map(conn));
}

void mistake_conn_as_map(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_map_count((fb_map *)(void *)conn);
}

void mistake_conn_as_target(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_connect(conn, (const fb_target *)(const void *)conn, &no_ops, NULL);
}

static void connect_to_old(fb_worker *worker)
{
    const struct mistaken_worker *state = fb_own_state(worker);

    fb_connect_with(worker, state->target, &no_ops, NULL, NULL);
}

void mistake_target_ended(fb_conn *conn, fb_bytes in)
{
    (void)in;
    mistaken_own(conn)->target = fb_make_target(conn, "127.0.0.1:9");
    fb_abort(conn);
    mistaken_make_later(conn, connect_to_old);
}

void mistake_pool_stray(fb_conn *conn, fb_bytes in)
{
    char stray[64];

    (void)in;
    fb_run_in(fb_worker_of(conn), (const fb_pool *)(const void *)stray, mistaken_ignore,
        mistaken_run_nothing, NULL, 0);
}

/* ---- Places ---- */

static void *write_on_thread(void *conn)
{
    fb_write(conn, "x", 1);
    return NULL;
}

void mistake_thread_write(fb_conn *conn, fb_bytes in)
{
    pthread_t thread;

    (void)in;
    if (pthread_create(&thread, NULL, write_on_thread, conn) == 0)
        pthread_join(thread, NULL);
}

static void log_in_job(void *job)
{
    fb_worker *worker;

    memcpy(&worker, job, sizeof(worker));
    fb_worker_logf(worker, FB_LOG_ERROR, "from a job");
}

void mistake_job_log(fb_conn *conn, fb_bytes in)
{
    fb_worker *worker = fb_worker_of(conn);

    (void)in;
    fb_run(worker, log_in_job, mistaken_run_nothing, &worker, sizeof(worker));
}

static void post_in_job(void *job)
{
    fb_worker *worker;

    memcpy(&worker, job, sizeof(worker));
    fb_post(worker, mistaken_run_nothing, NULL, 0);
}

void mistake_job_post(fb_conn *conn, fb_bytes in)
{
    fb_worker *worker = fb_worker_of(conn);

    (void)in;
    fb_run(worker, post_in_job, mistaken_run_nothing, &worker, sizeof(worker));
}

void mistake_conf_kept(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_conf_alloc(((const struct mistaken *)fb_conf_of(conn))->conf, 1);
}

void mistake_master_log(fb_conn *conn, fb_bytes in)
{
    char stray[64];

    (void)conn, (void)in;
    fb_master_logf((fb_master *)(void *)stray, FB_LOG_ERROR, "from a worker");
}

/* ---- Output after the end ---- */

void mistake_close_write(fb_conn *conn, fb_bytes in)
{
    fb_close(conn);
    fb_write(conn, in.p, in.n);
}

void mistake_abort_write(fb_conn *conn, fb_bytes in)
{
    fb_abort(conn);
    fb_writev(conn, &in, 1);
}

void mistake_shutdown_write(fb_conn *conn, fb_bytes in)
{
    fb_shutdown(conn);
    fb_write_ref(conn, in.p, in.n, mistaken_ignore, NULL);
}

void mistake_closed_write(fb_conn *conn, fb_bytes in)
{
    (void)in;
    mistaken_own(conn)->old = conn; /* see mistaken_closed() */
    fb_close(conn);
}

/* ---- The protocol ---- */

static const struct {
    const char *name;
    void (*make)(fb_conn *conn, fb_bytes in);
} mistakes[] = {
#define MISTAKE(name, report) { #name, mistake_##name },
#include "mistakes.def"
#undef MISTAKE
};

static size_t mistaken_data(fb_conn *conn, void *state, fb_bytes in)
{
    size_t n = in.n > 0 && in.p[in.n - 1] == '\n' ? in.n - 1 : 0;

    (void)state;
    if (n == 2 && memcmp(in.p, "go", n) == 0)
        fb_close(mistaken_own(conn)->old);
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        if (strlen(mistakes[i].name) == n && memcmp(in.p, mistakes[i].name, n) == 0) {
            mistakes[i].make(conn, in);
            return mistakes[i].make == mistake_consumed ? in.n + 1 : in.n;
        }
    return in.n;
}

static void mistaken_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    if (mistaken_own(conn)->old == conn && mistaken_own(conn)->later == NULL &&
        reason == FB_FINISHED)
        fb_write(conn, "x", 1);
}

static void mistaken_timer(fb_worker *worker, void *state, uint32_t id)
{
    const struct mistaken_worker *own = state;

    (void)id;
    own->later(worker);
}

static int mistaken_message(fb_worker *worker, void *state, fb_ref from, fb_bytes message)
{
    struct mistaken_worker *own = state;

    (void)worker, (void)from;
    own->kept = message.p;
    return 0;
}

/* The message or the answer is used too late. */
static void mistaken_answered(fb_worker *worker, void *state, const fb_answer *answer)
{
    struct mistaken_worker *own = state;

    if (own->later == NULL) {
        mistaken_read_kept(worker);
        return;
    }
    own->kept = (const volatile uint8_t *)answer;
    fb_worker_timer(worker, 1, 1);
}

static void mistaken_map_changed(
    fb_worker *worker, void *state, fb_map *map, fb_bytes key, fb_map_change what)
{
    struct mistaken_worker *own = state;

    (void)map, (void)what;
    own->kept = key.p;
    own->later = mistaken_read_kept;
    fb_worker_timer(worker, 1, 1);
}

static int mistaken_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf, (void)value, (void)args, (void)n;
    fb_address_text(NULL, NULL, 0);
    fb_mono_ms(NULL);
    return 0;
}

static int mistaken_conf_done(fb_conf *conf, void *own, const void *parent)
{
    const fb_map_options options = { .size = sizeof(options),
        .name = "map",
        .version = 1,
        .capacity = 16,
        .key_max = 64,
        .value_max = 64 };
    struct mistaken *mistaken = own;

    (void)parent;
    mistaken->conf = conf;
    mistaken->map = fb_conf_map(conf, &options);
    mistaken->lent = fb_conf_variable(conf, NULL, "$mistaken_lent");
    if (mistaken->at == 1)
        fb_wall_ms(NULL);
    return mistaken->map != NULL ? 0 : -1;
}

static void mistaken_conf_accepted(fb_master *master, const void *own)
{
    const struct mistaken *mistaken = own;

    (void)master;
    if (mistaken->at == 2)
        fb_worker_count(NULL);
}

static const fb_ops mistaken_ops = {
    .size = sizeof(fb_ops), .data = mistaken_data, .closed = mistaken_closed
};

static const fb_worker_ops mistaken_worker_ops = {
    .size = sizeof(fb_worker_ops),
    .timer = mistaken_timer,
    .message = mistaken_message,
    .answered = mistaken_answered,
    .map_changed = mistaken_map_changed,
};

static const fb_directive mistaken_directives[] = {
    { .name = "mistaken", .flags = FB_DIRECTIVE_HANDLER },
    { .name = "mistaken_at",
        .value = FB_VALUE_NAME,
        .offset = offsetof(struct mistaken, at),
        .names = mistaken_places },
    { .name = "mistaken_set", .value = FB_VALUE_CUSTOM, .set = mistaken_set },
};

static const fb_metric mistaken_metrics[] = { { "mistakes", FB_COUNTER, 0 } };

static const fb_variable_definition mistaken_variables[] = {
    { .name = "mistaken_lent", .value = mistaken_value },
};

static const char *const mistaken_reads[] = { "/etc/passwd", NULL };

FB_PROTOCOL(mistaken) = {
    FB_PROTOCOL_HEADER,
    .name = "mistaken",
    FB_PROTOCOL_DIRECTIVES(mistaken_directives),
    FB_PROTOCOL_METRICS(mistaken_metrics),
    FB_PROTOCOL_VARIABLES(mistaken_variables),
    .conn_state = 64,
    .conf_state = sizeof(struct mistaken),
    .worker_state = sizeof(struct mistaken_worker),
    .ops = &mistaken_ops,
    .conf_done = mistaken_conf_done,
    .worker_ops = &mistaken_worker_ops,
    .reads = mistaken_reads,
    .conf_accepted = mistaken_conf_accepted,
};
