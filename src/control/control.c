/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepts clients and keeps the list of them, and the timer that accepts again after a failure. */
#include "control/control.h"

#include "control/client.h"
#include "control/exchange.h"
#include "process/process_ops.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define RETRY_MS 500
#define ACCEPT_MAX 32 /* clients in one call, so that they cannot keep the master busy */

static void accept_again(struct loop *loop, struct timer *timer)
{
    struct control *control = container_of(timer, struct control, retry);

    CHECK_KIND(control, CONTROL_KIND);
    assert(loop == NULL);
    control_serve(control);
}

void control_init(struct control *control, const struct control_ops *ops, void *host,
    const struct control_socket *socket, struct log *log, struct timers *timers)
{
    assert(ops->status != NULL && ops->generation != NULL && ops->worker != NULL);
    assert(ops->command != NULL && ops->is_worker != NULL);
    assert(ops->is_worker_user != NULL && ops->is_master != NULL);
    *control = (struct control) {
        .kind = CONTROL_KIND,
        .ops = ops,
        .host = host,
        .log = log,
        .timers = timers,
        .socket = socket,
        .retry = { .expired = accept_again },
    };
    TAILQ_INIT(&control->clients);
}

void control_check(const struct control *control)
{
    const struct control_client *client;
    unsigned n = 0;

    CHECK_KIND(control, CONTROL_KIND);
    assert((control->socket->path == NULL) == (control->socket->fd == -1));
    TAILQ_FOREACH (client, &control->clients, link) {
        control_client_check(client);
        assert(client->control == control);
        n++;
    }
    assert(n == control->client_n && n <= CONTROL_CLIENTS_MAX);
}

/* The kernel does not announce again a client that is still in the queue. */
static void accept_later(struct control *control, int error)
{
    if (!control->accept_failed)
        log_write(control->log, LEVEL_ERROR, error, "accept4() for the control socket failed");
    control->accept_failed = true;
    process_ops->wakeup_expect(control->socket->fd, WAKEUP_END);
    timers_arm(control->timers, &control->retry, RETRY_MS);
}

static void accept_clients(struct control *control)
{
    process_ops->wakeup_expect(control->socket->fd, WAKEUP_INPUT);
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = control_socket_accept(control->socket);

        if (fd == -1) {
            if (errno != EAGAIN)
                accept_later(control, errno);
            return;
        }
        control->accept_failed = false;
        control_exchange_begin(control, fd);
    }
    process_ops->raise(SIGIO); /* perhaps more wait */
}

void control_serve(struct control *control)
{
    struct control_client *client, *next;

    control_check(control);
    if (control->socket->fd != -1)
        accept_clients(control);
    TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
        control_exchange_run(client);
    control_check(control);
}

void control_before_reaping(struct control *control)
{
    CHECK_KIND(control, CONTROL_KIND);
    assert(control->socket->fd != -1);
    accept_clients(control);
}

int control_take_over(struct control *control)
{
    const struct control_client *client;
    int status = 0;

    control_check(control);
    if (control->socket->fd != -1 && process_ops->wakeup_add(control->socket->fd) == -1)
        status = -1;
    TAILQ_FOREACH (client, &control->clients, link)
        if (process_ops->wakeup_add(client->fd) == -1)
            status = -1;
    return status;
}

void control_wait_on(struct control *control, enum control_wait from, enum control_wait to)
{
    struct control_client *client;

    assert(from != CONTROL_WAIT_NONE && to != CONTROL_WAIT_NONE);
    assert(from != CONTROL_WAIT_EXIT && to != CONTROL_WAIT_EXIT);
    TAILQ_FOREACH (client, &control->clients, link)
        if (client->waiting_for == from)
            client->waiting_for = to;
}

void control_tell(
    struct control *control, enum control_wait waiting_for, const char *why, bool changed)
{
    struct control_client *client;

    CHECK_KIND(control, CONTROL_KIND);
    TAILQ_FOREACH (client, &control->clients, link)
        if (client->waiting_for == waiting_for && client->progress && (changed || !client->told))
            control_reply_waiting(client, why);
}

void control_reply(
    struct control *control, enum control_wait waiting_for, const struct control_outcome *outcome)
{
    struct control_client *client, *next;

    CHECK_KIND(control, CONTROL_KIND);
    assert(waiting_for != CONTROL_WAIT_NONE && waiting_for != CONTROL_WAIT_EXIT);
    assert(outcome->ok || outcome->error != NULL);
    TAILQ_FOREACH_SAFE (client, &control->clients, link, next) {
        if (client->waiting_for != waiting_for)
            continue;
        assert(client->phase == CLIENT_WAITING);
        if (waiting_for == CONTROL_WAIT_QUIT)
            client->waiting_for = CONTROL_WAIT_EXIT;
        control_reply_outcome(client, outcome);
        control_exchange_run(client);
    }
}

void control_end(struct control *control)
{
    struct control_client *client;

    control_check(control);
    while ((client = TAILQ_FIRST(&control->clients)) != NULL) {
        if (client->waiting_for == CONTROL_WAIT_EXIT)
            client->fd = -1; /* the kernel closes it when we are gone */
        control_client_destroy(client);
    }
    timers_disarm(control->timers, &control->retry);
}
