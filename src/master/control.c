/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket itself. What can fail while we serve is a line in the log; signals still work. */
#include "master/master.h"

#include "process/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16
#define SUFFIX ".new"
#define OLD_SUFFIX ".oldbin" /* as the pid file's */
#define RETRY_MS 500
#define ACCEPT_MAX 32 /* at once, so that nobody keeps the master busy */

static_assert(
    FB_CONTROL_PATH_MAX + sizeof(OLD_SUFFIX) <= sizeof(((struct sockaddr_un *)0)->sun_path),
    "a path has room for the suffix");

void fb_control_init(struct fb_control *control)
{
    *control = (struct fb_control) { .fd = -1 };
    TAILQ_INIT(&control->clients);
}

static void set_address(struct sockaddr_un *address, const char *path, const char *suffix)
{
    *address = (struct sockaddr_un) { .sun_family = AF_UNIX };
    snprintf(address->sun_path, sizeof(address->sun_path), "%s%s", path, suffix);
}

/* Whether the name, which may be spelled in another way, stands for our socket. */
static bool is_named(const struct fb_control *control, const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && st.st_dev == control->device && st.st_ino == control->inode;
}

/* Only a socket that nobody answers on may be replaced: a crash has left it behind. */
static int check_replaceable(struct master *master, const char *path)
{
    struct sockaddr_un address;
    struct stat st;
    int fd, error;

    if (lstat(path, &st) == -1) /* none, or bind() says why not */
        return 0;
    if (!S_ISSOCK(st.st_mode)) {
        fb_log(&master->log, FB_EMERG, 0, "the control socket \"%s\" exists and is not a socket",
            path);
        return -1;
    }
    set_address(&address, path, "");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd == -1 || connect(fd, (struct sockaddr *)&address, sizeof(address)) == -1 ? errno : 0;
    if (fd != -1)
        close(fd);
    if (error == ECONNREFUSED || error == ENOENT)
        return 0;
    fb_log(&master->log, FB_EMERG, error,
        "the control socket \"%s\" is in use: give this daemon another \"control\"", path);
    return -1;
}

/* Nobody but our user may connect, from its first moment on. */
static int bind_private(int fd, const struct sockaddr_un *address)
{
    mode_t mask = umask(0177);
    int status = bind(fd, (const struct sockaddr *)address, sizeof(*address));
    int error = errno;

    umask(mask);
    errno = error;
    return status;
}

/* Written aside and renamed, so that whoever finds it is answered. NULL, or the call that failed, with
 * errno. */
static const char *open_socket(struct fb_control *made)
{
    struct sockaddr_un aside;
    struct stat st;

    set_address(&aside, made->path, SUFFIX);
    made->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made->fd == -1)
        return "socket";
    if (unlink(aside.sun_path) == -1 && errno != ENOENT)
        return "unlink";
    if (bind_private(made->fd, &aside) == -1)
        return "bind";
    if (listen(made->fd, BACKLOG) == -1)
        return "listen";
    if (lstat(aside.sun_path, &st) == -1)
        return "lstat";
    if (fb_channel_wake(made->fd) == -1)
        return "fcntl";
    if (rename(aside.sun_path, made->path) == -1)
        return "rename";
    made->device = st.st_dev;
    made->inode = st.st_ino;
    return NULL;
}

static void undo(const struct fb_control *made, const char *failed)
{
    struct sockaddr_un aside;

    set_address(&aside, made->path, SUFFIX);
    if (strcmp(failed, "socket") != 0 && strcmp(failed, "bind") != 0)
        unlink(aside.sun_path);
    if (made->fd != -1)
        close(made->fd);
}

static void remove_socket(struct fb_log *log, struct fb_control *control)
{
    if (control->path == NULL)
        return;
    if (is_named(control, control->path) && unlink(control->path) == -1)
        fb_log(log, FB_ALERT, errno, "unlink() \"%s\" failed", control->path);
    close(control->fd);
    free(control->path);
    control->path = NULL;
    control->fd = -1;
}

/* It will make way for ours. */
static bool is_old_ones(const struct master *master, const char *path)
{
    const char *old = master->upgrade.control;

    return old != NULL && strcmp(old, path) == 0;
}

int fb_control_prepare(struct master *master, const char *path)
{
    struct fb_control *control = &master->control, *next = &master->next_control;
    const char *failed;

    if (path == NULL || (control->path != NULL && is_named(control, path)) ||
        (next->path != NULL && is_named(next, path)))
        return 0;
    fb_control_undo(master); /* somebody has removed what was prepared */
    if (!is_old_ones(master, path) && check_replaceable(master, path) == -1)
        return -1;
    next->path = strdup(path);
    failed = next->path == NULL ? "strdup" : open_socket(next);
    if (failed == NULL)
        return 0;
    fb_log(
        &master->log, FB_EMERG, errno, "%s() for the control socket \"%s\" failed", failed, path);
    if (next->path != NULL)
        undo(next, failed);
    free(next->path);
    fb_control_init(next);
    return -1;
}

void fb_control_publish(struct master *master)
{
    struct fb_control *control = &master->control, *next = &master->next_control;

    if (next->path == NULL && master->pool.serving->cycle->core.control != NULL)
        return;
    remove_socket(&master->log, control); /* the one before, if it is still at its name */
    control->path = next->path;
    control->fd = next->fd;
    control->device = next->device;
    control->inode = next->inode;
    fb_control_init(next);
    raise(SIGIO); /* there may be clients who have not been looked at */
}

void fb_control_undo(struct master *master)
{
    remove_socket(&master->log, &master->next_control);
}

void fb_control_copy(struct master *master)
{
    struct sockaddr_un old;

    if (master->control.path == NULL)
        return;
    set_address(&old, master->control.path, OLD_SUFFIX);
    if ((unlink(old.sun_path) == -1 && errno != ENOENT) ||
        link(master->control.path, old.sun_path) == -1)
        fb_log(&master->log, FB_ERROR, errno, "link() \"%s\" to \"%s\" failed",
            master->control.path, old.sun_path);
}

void fb_control_move(struct master *master)
{
    struct fb_control *control = &master->control;
    char *old;

    if (control->path == NULL || asprintf(&old, "%s%s", control->path, OLD_SUFFIX) == -1)
        return;
    if (is_named(control, control->path)) /* the other one has another path */
        unlink(control->path);
    free(control->path);
    control->path = old;
}

void fb_control_return(struct master *master)
{
    struct fb_control *control = &master->control;
    size_t n = control->path != NULL ? strlen(control->path) : 0, suffix = strlen(OLD_SUFFIX);
    struct sockaddr_un old;

    if (n > suffix && strcmp(control->path + n - suffix, OLD_SUFFIX) == 0)
        control->path[n - suffix] = '\0';
    if (n == 0)
        return;
    set_address(&old, control->path, OLD_SUFFIX);
    if (!is_named(control, control->path) && rename(old.sun_path, control->path) == -1)
        fb_log(&master->log, FB_ERROR, errno, "rename() \"%s\" to \"%s\" failed", old.sun_path,
            control->path);
    if (unlink(old.sun_path) == -1 && errno != ENOENT)
        fb_log(&master->log, FB_ERROR, errno, "unlink() \"%s\" failed", old.sun_path);
}

void fb_control_end(struct master *master)
{
    struct fb_client *client;

    remove_socket(&master->log, &master->control);
    while ((client = TAILQ_FIRST(&master->control.clients)) != NULL) {
        if (client->awaits == FB_AWAITS_END)
            client->fd = -1; /* closed when we are gone */
        fb_client_destroy(&master->control, client);
    }
}

void fb_control_forget(struct fb_control *control)
{
    struct fb_client *client;

    while ((client = TAILQ_FIRST(&control->clients)) != NULL)
        fb_client_destroy(control, client);
    if (control->fd != -1)
        close(control->fd);
    free(control->path);
    fb_control_init(control);
}

/* Whoever waits is not announced again. */
static void accept_later(struct master *master, int error)
{
    if (!master->control.troubled)
        fb_log(&master->log, FB_ERROR, error, "accept4() for the control socket failed");
    master->control.troubled = true;
    master->control.retry_ms = master->clock.mono_ms + RETRY_MS;
}

static void accept_all(struct master *master)
{
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = accept4(master->control.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd != -1) {
            master->control.troubled = false;
            fb_client_create(master, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN)
            accept_later(master, errno);
        return;
    }
    raise(SIGIO); /* there may be more */
}

void fb_control_listen(struct master *master)
{
    struct fb_client *client, *next;

    if (master->control.fd != -1)
        accept_all(master);
    TAILQ_FOREACH_SAFE (client, &master->control.clients, link, next)
        fb_client_go_on(master, client);
}

void fb_control_meet_deadlines(struct master *master, uint64_t *next)
{
    struct fb_control *control = &master->control;
    struct fb_client *client, *behind;

    if (control->retry_ms != 0 && control->retry_ms <= master->clock.mono_ms) {
        control->retry_ms = 0;
        fb_control_listen(master);
    }
    if (control->retry_ms != 0 && (*next == 0 || control->retry_ms < *next))
        *next = control->retry_ms;
    TAILQ_FOREACH_SAFE (client, &master->control.clients, link, behind) {
        if (client->deadline_ms == 0)
            continue;
        if (client->deadline_ms <= master->clock.mono_ms)
            fb_client_destroy(&master->control, client);
        else if (*next == 0 || client->deadline_ms < *next)
            *next = client->deadline_ms;
    }
}
