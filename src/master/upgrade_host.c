/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of upgrade/: endpoints, listeners, clients and the service manager. Messages of the
 * other master process end here, and are never asserted on. */
#include "master/upgrade_host.h"

#include "base/check.h"
#include "base/compiler.h"
#include "master/master.h"
#include "os/descriptor.h"
#include "pool/listeners.h"
#include "pool/start.h"
#include "process/listeners.h"
#include "process/role.h"

#include <assert.h>

/* Poll interval for workers of an ended master process. */
#define OTHERS_LEFT_MS 500
/* The same where they listen on paths of ours, and for how long at most: then the reload fails, and
 * says why. */
#define LOST_PATHS_MS 50
#define LOST_PATHS_TRIES 100

static const struct listeners *find_listeners(void *host)
{
    const struct master *master = master_of(host);

    return master->pool.serving != NULL ? &master->pool.serving->cycle->stream.listeners : NULL;
}

static const char *find_control_path(void *host)
{
    return master_of(host)->endpoints.control.path;
}

static void note_living(void *arg, const struct left_worker *left)
{
    bool *living = arg;

    living[left->slot] = true;
}

/* Releases the worker slots of an ended master process, which cannot do so if it was killed, as
 * the workers end. */
static void look_at_others(struct loop *loop, struct timer *timer)
{
    struct master *master = container_of(timer, struct master, others_left);
    bool living[SLOT_HALVES * SLOT_MAX] = { false };
    unsigned side = 1 - master->shared->half;
    struct generation *generation;

    (void)loop;
    assert(role_is(ROLE_MASTER));
    if (master->upgrade.phase != UPGRADE_NONE) /* the next one's slots are the same */
        return;
    if (worker_list_find_others(&master->list, note_living, living) > 0)
        timers_arm(&master->timers, timer, OTHERS_LEFT_MS);
    TAILQ_FOREACH (generation, &master->pool.generations, link)
        for (uint32_t slot = side * SLOT_MAX; slot < (side + 1) * SLOT_MAX; slot++)
            if (!living[slot])
                zones_slot_released(&generation->cycle->zones, (struct slot_id) { .slot = slot });
}

static void write_state(void *host, struct exec_state_writer *state, int link)
{
    struct master *master = master_of(host);
    struct pidfile *pidfile = &master->endpoints.pidfile;
    const struct cycle *cycle = master->pool.serving->cycle;
    const struct adopted_socket *passed;
    const struct listener *listener;
    const struct zone *zone;
    unsigned side = 1 - master->shared->half;

    assert(role_is(ROLE_MASTER));
    /* a killed master process may have left numbers in the slots that the new process gets */
    for (uint32_t i = 0; i < SLOT_MAX; i++)
        zones_slot_released(
            &master->pool.serving->cycle->zones, (struct slot_id) { .slot = side * SLOT_MAX + i });
    pidfile->shared = true;
    exec_state_begin(state, link, pidfile->lock_fd, side, shared_serial(master->shared));
    STAILQ_FOREACH (passed, &master->pool.adopted->sockets, link)
        if (passed->fd != -1)
            exec_state_add_passed(state, passed);
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        for (unsigned i = listener->kept_n; i < listener->fd_n; i++)
            if (listener->fds[i] != -1)
                exec_state_add_socket(state, listener->fds[i]);
    STAILQ_FOREACH (zone, &cycle->zones, link)
        exec_state_add_zone(state, zone->segment.fd);
}

static int prepare_endpoints(void *host)
{
    struct master *master = master_of(host);

    return endpoints_prepare_hand_over(&master->endpoints, &master->log);
}

static void hand_endpoints_over(void *host)
{
    struct master *master = master_of(host);

    endpoints_hand_over(&master->endpoints, &master->log);
}

static void take_endpoints_back(void *host)
{
    struct master *master = master_of(host);

    endpoints_take_back(&master->endpoints, &master->log);
}

static void reply_refused(void *host, const char *why)
{
    struct master *master = master_of(host);
    struct control_outcome outcome = { .ok = false, .error = why };

    control_reply(&master->control, CONTROL_WAIT_UPGRADE, &outcome);
}

static void note_begun(void *host)
{
    control_wait_on(&master_of(host)->control, CONTROL_WAIT_UPGRADE, CONTROL_WAIT_UPGRADE_END);
}

static void reply_ended(void *host, bool ok, const char *why, const struct diag *diag)
{
    struct master *master = master_of(host);
    struct control_outcome outcome = { .ok = ok, .error = why, .diag = diag };

    outcome.pid = ok ? master->upgrade.other : 0;
    control_reply(&master->control, CONTROL_WAIT_UPGRADE_END, &outcome);
}

static void give_way_as_main(void *host, pid_t to, bool stored)
{
    struct master *master = master_of(host);

    if (stored)
        service_manager_give_way(&master->manager, to);
    else
        notify_mainpid(&master->log, to);
}

static void become_main(void *host)
{
    struct master *master = master_of(host);

    notify_cancel_mainpid();          /* no news for an ended process */
    if (master->pool.serving == NULL) /* told once a generation serves */
        return;
    service_manager_ready(&master->manager);
}

/* Begins a reload, to rebind unix paths unlinked by the ended process. Waits for workers of a
 * killed process: the workers listen until aware of the death. */
static void bind_lost_paths(struct loop *loop, struct timer *timer)
{
    struct master *master = container_of(timer, struct master, lost_paths);
    const struct generation *serving = master->pool.serving;
    unsigned in_use;

    (void)loop;
    assert(role_is(ROLE_MASTER));
    timers_disarm(&master->timers, timer);
    if (master->phase != MASTER_RUNS || serving == NULL || serving->phase != GENERATION_SERVING ||
        master->upgrade.sockets.n > 0 || upgrade_is_new(&master->upgrade) ||
        listeners_count_lost(serving->cycle, &in_use) == 0)
        return;
    if (in_use > 0 && master->lost_paths_tries-- > 0)
        timers_arm(&master->timers, timer, LOST_PATHS_MS);
    else
        signals_raise(COMMAND_RELOAD);
}

static void look_for_lost_paths(struct master *master)
{
    master->lost_paths_tries = LOST_PATHS_TRIES;
    bind_lost_paths(NULL, &master->lost_paths);
}

/* The lock is ours alone once the other process has ended: a remaining holder is a child of ours
 * that is about to close it. The lock's file goes with our quit. */
static void own_lock(struct master *master)
{
    if (master->upgrade.phase == UPGRADE_NONE)
        master->endpoints.pidfile.shared = false;
}

static void rescan_for_other(void *host)
{
    struct master *master = master_of(host);

    own_lock(master);
    look_at_others(NULL, &master->others_left);
    pool_rescan(&master->pool, NULL);
    look_for_lost_paths(master);
}

/* A reload under way, or the reload of a rollback, serves by itself. */
static void serve_for_other(void *host)
{
    struct master *master = master_of(host);

    if (master->phase == MASTER_RUNS && master->pool.serving != NULL &&
        master->pool.starting == NULL)
        pool_revive(&master->pool);
}

static void go_on_alone(void *host)
{
    struct master *master = master_of(host);

    own_lock(master);
    look_at_others(NULL, &master->others_left);
    if (master->phase != MASTER_RUNS || master->pool.serving == NULL)
        return;
    /* a reload meanwhile may have moved the endpoints */
    endpoints_publish_again(
        &master->endpoints, &master->pool.serving->cycle->core, NULL, &master->log);
    pool_revive(&master->pool);
    look_for_lost_paths(master);
    pool_rescan(&master->pool, NULL);
}

/* Adds a socket to the serving listeners. A starting generation shares listeners with the live
 * generation until its commit. */
static bool adopt_listening_socket(struct master *master, const struct address *address, int fd)
{
    struct generation *starting = master->pool.starting;
    bool added = false;

    if (starting == NULL || starting->phase == GENERATION_STARTING)
        added = upgrade_sockets_adopt(&master->pool.serving->cycle->stream.listeners, address, fd);
    if (starting != NULL)
        added = upgrade_sockets_adopt(&starting->cycle->stream.listeners, address, fd) || added;
    return added;
}

static void adopt_socket(void *host, int fd)
{
    struct master *master = master_of(host);
    struct address address;
    char text[ADDRESS_TEXT];

    if (master->phase != MASTER_RUNS || master->pool.serving == NULL ||
        address_of_socket(&address, fd) == -1 || !adopt_listening_socket(master, &address, fd)) {
        descriptor_close(fd);
        return;
    }
    log_write(&master->log, LEVEL_NOTICE, 0,
        "a socket of %s comes from process %d: workers that serve it are started",
        address_format(&address, true, text), (int)master->upgrade.other);
    signals_raise(COMMAND_RELOAD);
}

static const struct upgrade_ops ops = {
    .listeners = find_listeners,
    .control_path = find_control_path,
    .write_state = write_state,
    .prepare_hand_over = prepare_endpoints,
    .hand_over = hand_endpoints_over,
    .take_back = take_endpoints_back,
    .refused = reply_refused,
    .begun = note_begun,
    .ended = reply_ended,
    .leave_main = give_way_as_main,
    .become_main = become_main,
    .left_alone = go_on_alone,
    .other_quits = serve_for_other,
    .rescan = rescan_for_other,
    .adopt_socket = adopt_socket,
};

void upgrade_host_init(
    struct master *master, struct exec_state *inheritance, const struct binary *binary)
{
    master->others_left.expired = look_at_others;
    master->lost_paths.expired = bind_lost_paths;
    upgrade_init(&master->upgrade, &ops, master, &master->pool, inheritance, binary);
}

void upgrade_host_begin(struct master *master)
{
    assert(master->reload.phase == RELOAD_IDLE);
    assert(master->pool.starting == NULL && master->pool.serving != NULL);
    upgrade_begin(&master->upgrade, master->phase != MASTER_RUNS ? "the daemon is ending" : NULL,
        master->pool.serving->cycle->core.worker_start_timeout);
    if (master->upgrade.phase == UPGRADE_STARTING)
        commands_note_upgrade(&master->commands, &master->timers);
}
