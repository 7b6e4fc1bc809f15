/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves both endpoints through their common life, each by the operations of its kind.
 * endpoints_set() alone changes the phase. */
#include "master/endpoints.h"

#include "base/check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENDPOINTS_KIND KIND('E', 'n', 'd', 'p')

/* The pid file */

static void init_pidfile(union endpoint_file *file)
{
    file->pidfile = (struct pidfile) { .lock_fd = -1 };
}

static bool exists_pidfile(const union endpoint_file *file)
{
    assert((file->pidfile.lock_fd == -1) == (file->pidfile.path == NULL));
    return file->pidfile.lock_fd != -1;
}

static bool match_pidfile(const union endpoint_file *file, const char *path)
{
    return exists_pidfile(file) && pidfile_is_at(&file->pidfile, path);
}

static int create_pidfile(
    union endpoint_file *file, const char *path, bool replace, struct log *log)
{
    char *copy = strdup(path);

    (void)replace; /* the lock alone decides */
    if (copy == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory for the path of the pid file");
        return -1;
    }
    if (pidfile_lock(&file->pidfile, copy, log) == 0)
        return 0;
    free(copy);
    init_pidfile(file);
    return -1;
}

static int show_pidfile(union endpoint_file *file, struct log *log)
{
    return pidfile_write_pid(&file->pidfile, log);
}

static void close_pidfile(union endpoint_file *file)
{
    pidfile_close_lock(&file->pidfile);
    free((char *)file->pidfile.path);
    init_pidfile(file);
}

static void remove_pidfile(union endpoint_file *file, struct log *log)
{
    pidfile_release(&file->pidfile, log);
    close_pidfile(file);
}

static int link_pidfile(union endpoint_file *file, struct log *log)
{
    return pidfile_link_old(&file->pidfile, log);
}

static void leave_pidfile(union endpoint_file *file, struct log *log)
{
    pidfile_leave_path(&file->pidfile, log);
}

static void restore_pidfile(union endpoint_file *file, struct log *log)
{
    pidfile_restore_path(&file->pidfile, log);
}

static const struct endpoint_ops pidfile_ops = {
    .init = init_pidfile,
    .exists = exists_pidfile,
    .is_at = match_pidfile,
    .create = create_pidfile,
    .show = show_pidfile,
    .remove = remove_pidfile,
    .close = close_pidfile,
    .link_old = link_pidfile,
    .leave_path = leave_pidfile,
    .restore_path = restore_pidfile,
};

/* The control socket */

static void init_control(union endpoint_file *file)
{
    control_socket_init(&file->control);
}

static bool exists_control(const union endpoint_file *file)
{
    return file->control.path != NULL;
}

static bool match_control(const union endpoint_file *file, const char *path)
{
    return control_socket_is_at(&file->control, path);
}

static int create_control(
    union endpoint_file *file, const char *path, bool replace, struct log *log)
{
    return control_socket_create(&file->control, path, replace, log);
}

static int show_control(union endpoint_file *file, struct log *log)
{
    (void)file; /* found since it was made */
    (void)log;
    return 0;
}

static void remove_control(union endpoint_file *file, struct log *log)
{
    control_socket_remove(&file->control, log);
}

static void close_control(union endpoint_file *file)
{
    control_socket_close(&file->control);
}

static int link_control(union endpoint_file *file, struct log *log)
{
    control_socket_link_old(&file->control, log); /* signals still work without it */
    return 0;
}

static void leave_control(union endpoint_file *file, struct log *log)
{
    (void)log;
    control_socket_leave_path(&file->control);
}

static void restore_control(union endpoint_file *file, struct log *log)
{
    control_socket_restore_path(&file->control, log);
}

static const struct endpoint_ops control_ops = {
    .init = init_control,
    .exists = exists_control,
    .is_at = match_control,
    .create = create_control,
    .show = show_control,
    .remove = remove_control,
    .close = close_control,
    .link_old = link_control,
    .leave_path = leave_control,
    .restore_path = restore_control,
};

/* An endpoint of either kind */

static void init_endpoint(struct endpoint *endpoint, const struct endpoint_ops *ops)
{
    endpoint->ops = ops;
    ops->init(&endpoint->current);
    ops->init(&endpoint->next);
}

static void undo_endpoint(struct endpoint *endpoint, struct log *log)
{
    if (endpoint->ops->exists(&endpoint->next))
        endpoint->ops->remove(&endpoint->next, log);
    assert(!endpoint->ops->exists(&endpoint->next));
}

static int prepare_endpoint(
    struct endpoint *endpoint, const char *path, bool replace, struct log *log)
{
    const struct endpoint_ops *ops = endpoint->ops;

    if (path == NULL || ops->is_at(&endpoint->current, path) || ops->is_at(&endpoint->next, path))
        return 0;
    undo_endpoint(endpoint, log); /* another process has removed its file */
    return ops->create(&endpoint->next, path, replace, log);
}

static int show_endpoint(struct endpoint *endpoint, struct log *log)
{
    bool moves = endpoint->ops->exists(&endpoint->next);

    return endpoint->ops->show(moves ? &endpoint->next : &endpoint->current, log);
}

/* Puts `next` in the place of `current`, which is removed too where the configuration has none. */
static void publish_endpoint(struct endpoint *endpoint, bool wanted, struct log *log)
{
    const struct endpoint_ops *ops = endpoint->ops;

    if (!ops->exists(&endpoint->next) && wanted)
        return;
    if (ops->exists(&endpoint->current))
        ops->remove(&endpoint->current, log);
    endpoint->current = endpoint->next;
    ops->init(&endpoint->next);
}

/* The two of them */

static void endpoints_set(struct endpoints *endpoints, enum endpoints_phase phase)
{
    assert(phase < ENDPOINTS_PHASES);
    /* a step forward, or all the way back */
    assert(phase == endpoints->phase + 1 || phase == ENDPOINTS_OURS);
    endpoints->phase = phase;
}

void endpoints_check(const struct endpoints *endpoints)
{
    CHECK_KIND(endpoints, ENDPOINTS_KIND);
    assert(endpoints->phase < ENDPOINTS_PHASES);
    assert(endpoints->pidfile.ops == &pidfile_ops && endpoints->control.ops == &control_ops);
    assert(exists_pidfile(&endpoints->pidfile.current));
    assert(endpoints->pidfile.current.pidfile.old == (endpoints->phase == ENDPOINTS_HANDED_OVER));
    control_socket_check(&endpoints->control.current.control);
    control_socket_check(&endpoints->control.next.control);
}

void endpoints_init(struct endpoints *endpoints, const struct pidfile *pidfile)
{
    *endpoints = (struct endpoints) { .kind = ENDPOINTS_KIND };
    init_endpoint(&endpoints->pidfile, &pidfile_ops);
    init_endpoint(&endpoints->control, &control_ops);
    endpoints->pidfile.current.pidfile = *pidfile;
    endpoints_check(endpoints);
}

int endpoints_prepare(
    struct endpoints *endpoints, const struct endpoint_paths *paths, struct log *log)
{
    bool replace = paths->replaced != NULL && paths->control != NULL &&
                   strcmp(paths->replaced, paths->control) == 0;

    endpoints_check(endpoints);
    if (endpoints->phase == ENDPOINTS_HANDED_OVER) /* until the other process has gone */
        return 0;
    if (prepare_endpoint(&endpoints->pidfile, paths->pidfile, false, log) == -1 ||
        prepare_endpoint(&endpoints->control, paths->control, replace, log) == -1)
        return -1;
    return show_endpoint(&endpoints->pidfile, log);
}

void endpoints_undo(struct endpoints *endpoints, struct log *log)
{
    endpoints_check(endpoints);
    undo_endpoint(&endpoints->control, log);
    undo_endpoint(&endpoints->pidfile, log);
}

int endpoints_publish(
    struct endpoints *endpoints, const struct endpoint_paths *paths, struct log *log)
{
    if (endpoints_prepare(endpoints, paths, log) == -1)
        return -1;
    publish_endpoint(&endpoints->control, paths->control != NULL, log);
    publish_endpoint(&endpoints->pidfile, true, log);
    endpoints_check(endpoints);
    return 0;
}

int endpoints_prepare_hand_over(struct endpoints *endpoints, struct log *log)
{
    endpoints_check(endpoints);
    endpoints_set(endpoints, ENDPOINTS_SHARED);
    endpoints->control.ops->link_old(&endpoints->control.current, log);
    return endpoints->pidfile.ops->link_old(&endpoints->pidfile.current, log);
}

void endpoints_hand_over(struct endpoints *endpoints, struct log *log)
{
    endpoints_check(endpoints);
    endpoints_set(endpoints, ENDPOINTS_HANDED_OVER);
    endpoints->pidfile.ops->leave_path(&endpoints->pidfile.current, log);
    endpoints->control.ops->leave_path(&endpoints->control.current, log);
    endpoints_check(endpoints);
}

void endpoints_take_back(struct endpoints *endpoints, struct log *log)
{
    endpoints_check(endpoints);
    endpoints_set(endpoints, ENDPOINTS_OURS);
    endpoints->control.ops->restore_path(&endpoints->control.current, log);
    endpoints->pidfile.ops->restore_path(&endpoints->pidfile.current, log);
    endpoints_check(endpoints);
}

void endpoints_remove(struct endpoints *endpoints, struct log *log)
{
    endpoints_check(endpoints);
    endpoints_undo(endpoints, log);
    if (endpoints->control.ops->exists(&endpoints->control.current))
        endpoints->control.ops->remove(&endpoints->control.current, log);
    endpoints->pidfile.ops->remove(&endpoints->pidfile.current, log);
    endpoints->kind = 0;
}

void endpoints_close(struct endpoints *endpoints)
{
    struct endpoint *all[] = { &endpoints->pidfile, &endpoints->control };

    CHECK_KIND(endpoints, ENDPOINTS_KIND);
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        all[i]->ops->close(&all[i]->current);
        all[i]->ops->close(&all[i]->next);
    }
    endpoints->kind = 0;
}
