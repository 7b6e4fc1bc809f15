/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks servers: connects, sends, compares the answer, and reports the result. */
#include "protocols/proxy/proxy.h"

#include <errno.h>
#include <string.h>

/* Retry interval of a worker without room for a connection. */
#define RETRY_MS 1000
/* Turns of the loop in which the answer of a check may still come after the timeout. */
#define OVERDUE_TURNS 2

enum { TIMER_TIMEOUT };

static const fb_ops probe_ops;

int proxy_health_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    struct proxy_check *check = value;

    (void)conf;
    *check = (struct proxy_check) { .is_set = true, .args = args, .arg_n = n };
    return 0;
}

int proxy_health_done(fb_conf *conf, const fb_upstream *upstream, struct proxy_health *own)
{
    const fb_health_options options = {
        .size = sizeof(options),
        .args = own->check.args,
        .arg_n = own->check.arg_n,
        .timeout = (uint64_t)own->timeout,
    };

    if (!own->check.is_set)
        return 0;
    own->health_check = fb_conf_health_check(conf, "health_check", upstream, &options);
    return own->health_check != NULL ? 0 : -1;
}

static struct proxy_probe *find_free(struct proxy_checks *checks)
{
    for (size_t i = 0; i < PROXY_CHECKS_MOST; i++)
        if (checks->running[i].probe == NULL)
            return &checks->running[i];
    return NULL;
}

/* Chooses the address of proxy_bind for the next check, in turn, unless the address is text. */
static void bind_check(
    fb_connect_options *options, struct proxy_checks *checks, const struct proxy_bind *bind)
{
    if (bind->n == 0)
        return;
    options->local = (const struct sockaddr *)bind->list[checks->bind_turn++ % bind->n].fixed;
    if (options->local != NULL && bind->transparent)
        options->flags |= FB_CONNECT_TRANSPARENT;
}

/* Connects to the server of a check; false without room. */
static bool begin_check(
    fb_worker *worker, const struct proxy_health *health, struct proxy_probe *run)
{
    fb_connect_options options = {
        .size = sizeof(options),
        .timeout = run->probe->timeout,
        .log_level = FB_LOG_INFO,
    };
    fb_conn *server;

    bind_check(&options, run->checks, health->bind);
    if (health->tls != NULL) {
        options.tls = health->tls;
        options.tls_name =
            (fb_bytes) { (const uint8_t *)run->probe->host, strlen(run->probe->host) };
    }
    run->began_ms = fb_mono_ms(worker);
    run->doing = "connecting to upstream";
    server = fb_connect_with(worker, run->probe->target, &probe_ops, run, &options);
    if (server != NULL && health->tls != NULL) /* the handshake has the time once more */
        fb_timer(server, TIMER_TIMEOUT, run->probe->timeout);
    if (server != NULL)
        return true;
    run->checks->upstreams->probed(worker, run->probe, FB_PROBE_UNUSED, run->doing, 0);
    run->probe = NULL;
    return false;
}

/* Makes the due checks of a server, while there is room; returns the ms until the next. */
static uint64_t run_due(
    fb_worker *worker, struct proxy_checks *checks, const struct proxy_health *health)
{
    struct proxy_probe *run = find_free(checks);
    uint64_t wait;

    while (run != NULL) {
        *run = (struct proxy_probe) { .checks = checks, .most = health->most };
        run->probe = checks->upstreams->claim(worker, health->health_check, &wait);
        if (run->probe == NULL)
            return wait;
        if (!begin_check(worker, health, run))
            return RETRY_MS;
        run = find_free(checks);
    }
    return UINT64_MAX; /* the next that ends asks again */
}

/* Returns the check of the worker's server number i; NULL behind the last. */
static const struct proxy_health *health_of_server(const fb_worker *worker, size_t i)
{
    const struct proxy_conf *conf = fb_worker_conf(worker, i);

    return conf != NULL ? &conf->health : NULL;
}

void proxy_health_run(fb_worker *worker, struct proxy_checks *checks)
{
    const struct proxy_health *health;
    uint64_t next = UINT64_MAX;

    if (checks->draining)
        return;
    for (size_t i = 0; (health = health_of_server(worker, i)) != NULL; i++) {
        uint64_t wait = UINT64_MAX;

        if (health->health_check != NULL)
            wait = run_due(worker, checks, health);
        if (wait < next)
            next = wait;
    }
    if (next != UINT64_MAX)
        fb_worker_timer(worker, PROXY_TIMER_CHECKS, next > 0 ? next : 1);
}

void proxy_health_start(
    fb_worker *worker, struct proxy_checks *checks, const fb_upstreams *upstreams)
{
    const struct proxy_health *health;

    checks->upstreams = upstreams;
    for (size_t i = 0; (health = health_of_server(worker, i)) != NULL; i++)
        if (health->health_check != NULL) {
            fb_worker_timer(worker, PROXY_TIMER_CHECKS, 1);
            return;
        }
}

void proxy_health_drain(fb_worker *worker, struct proxy_checks *checks)
{
    checks->draining = true;
    fb_worker_timer_cancel(worker, PROXY_TIMER_CHECKS);
}

/* The connection of a check */

static int probe_opened(fb_conn *server, void *state)
{
    struct proxy_probe *run = state;
    const fb_probe *probe = run->probe;
    uint64_t passed_ms = fb_mono_ms(fb_worker_of(server)) - run->began_ms, left_ms = probe->timeout;

    if (passed_ms <
        probe->timeout) /* otherwise the worker has stood still, and the server answers now */
        left_ms -= passed_ms;
    fb_timer(server, TIMER_TIMEOUT, left_ms);
    run->doing = "sending to upstream";
    if (probe->send.n > 0)
        fb_write(server, probe->send.p, probe->send.n);
    if (probe->expects) {
        run->doing = "reading response from upstream";
        return 0;
    }
    run->passed = probe->send.n == 0;
    fb_close(server);
    return 0;
}

static size_t probe_data(fb_conn *server, void *state, fb_bytes in)
{
    struct proxy_probe *run = state;
    fb_verdict verdict = run->checks->upstreams->verdict(server, run->probe, in);

    if (verdict == FB_VERDICT_MORE && in.n < run->most)
        return 0;
    run->doing = "checking response from upstream";
    run->passed = verdict == FB_VERDICT_PASSED;
    if (run->passed)
        fb_close(server);
    else
        fb_abort(server);
    return in.n;
}

/* Ends a late check, unless an answer comes in the next turns: a worker that stood still does not
 * blame the server, whose answer may lie behind the timers. */
static void probe_timer(fb_conn *server, void *state, uint32_t id)
{
    struct proxy_probe *run = state;

    if (run->overdue_n++ < OVERDUE_TURNS) {
        fb_timer(server, id, 1);
        return;
    }
    run->error = ETIMEDOUT;
    fb_abort(server);
}

static fb_probe_end probe_end_of(fb_conn *server, const struct proxy_probe *run, fb_reason reason)
{
    if (run->passed || (reason == FB_FINISHED && !run->probe->expects))
        return FB_PROBE_PASSED;
    if (reason == FB_DRAINED || reason == FB_NO_MEMORY || proxy_is_shortage(fb_error_of(server)) ||
        proxy_lacks_port(fb_error_of(server)) || proxy_lacks_handshake(reason, fb_error_of(server)))
        return FB_PROBE_UNUSED;
    return FB_PROBE_FAILED;
}

static void probe_closed(fb_conn *server, void *state, fb_reason reason)
{
    fb_worker *worker = fb_worker_of(server);
    struct proxy_probe *run = state;
    fb_probe_end how = probe_end_of(server, run, reason);

    if (reason == FB_TLS_FAILED || reason == FB_TLS_TIMED_OUT)
        run->doing = "SSL handshaking to upstream";
    if (run->error == 0 && how == FB_PROBE_FAILED)
        run->error = fb_error_of(server);
    run->checks->upstreams->probed(worker, run->probe, how, run->doing, run->error);
    run->probe = NULL;
    proxy_health_run(worker, run->checks);
}

static const fb_ops probe_ops = {
    .size = sizeof(fb_ops),
    .opened = probe_opened,
    .data = probe_data,
    .timer = probe_timer,
    .closed = probe_closed,
};
