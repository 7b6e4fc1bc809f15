/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, names and removes the control socket. A failure while the daemon serves is a line in the
 * log; signals still work. */
#include "control/socket.h"

#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "os/sockets.h"
#include "process/process_ops.h"

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
#define NEW_SUFFIX ".new"
#define MODE_ALONE 0600

static_assert(CONTROL_PATH_MAX + sizeof(NEW_SUFFIX) <= sizeof(((struct sockaddr_un *)0)->sun_path),
    "a path has room for the suffix");

void control_socket_init(struct control_socket *control)
{
    *control = (struct control_socket) { .fd = -1 };
}

static void check_control_socket(const struct control_socket *control)
{
    assert((control->path == NULL) == (control->fd == -1));
    assert(control->path != NULL || control->second[0] == '\0');
    assert(!control->left || control->second[0] != '\0');
}

const char *control_socket_path(const struct control_socket *control, char name[PATH_MAX])
{
    if (control->path == NULL)
        return NULL;
    snprintf(name, PATH_MAX, "%s%s", control->path, control->left ? control->second : "");
    return name;
}

static void set_socket_address(struct sockaddr_un *address, const char *path, const char *suffix)
{
    assert(strlen(path) + strlen(suffix) < sizeof(address->sun_path));
    *address = (struct sockaddr_un) { .sun_family = AF_UNIX };
    snprintf(address->sun_path, sizeof(address->sun_path), "%s%s", path, suffix);
}

bool control_socket_is_at(const struct control_socket *control, const char *path)
{
    struct stat st;

    check_control_socket(control);
    return control->path != NULL && lstat(path, &st) == 0 && st.st_dev == control->device &&
           st.st_ino == control->inode;
}

/* Checks the path: a socket that refuses connections was left by a crash, and may be replaced. */
static int check_socket_replaceable(const char *path, struct log *log)
{
    struct sockaddr_un address;
    struct stat st;
    int fd, error;

    if (lstat(path, &st) == -1) /* no file, or bind() will fail */
        return 0;
    if (!S_ISSOCK(st.st_mode)) {
        log_write(
            log, LEVEL_EMERG, 0, "the control socket \"%s\" exists and is not a socket", path);
        return -1;
    }
    set_socket_address(&address, path, "");
    fd = descriptor_socket(AF_UNIX, SOCK_STREAM, O_NONBLOCK);
    error = fd == -1 || connect(fd, (struct sockaddr *)&address, sizeof(address)) == -1 ? errno : 0;
    if (fd != -1)
        close(fd);
    if (error == ECONNREFUSED || error == ENOENT)
        return 0;
    log_write(log, LEVEL_EMERG, error,
        "the control socket \"%s\" is in use: give this daemon another \"control\"", path);
    if (error == 0 || error == EAGAIN) /* EAGAIN: as many clients wait as may */
        log_note_temporary(log);
    return -1;
}

/* Gives the file a group (-1: leaves the file's own) and then the mode, with rights for the owner
 * alone meanwhile. Returns NULL, or the name of the failed call, with errno. */
static const char *set_rights(const char *path, gid_t group, mode_t mode)
{
    if (fchmodat(AT_FDCWD, path, MODE_ALONE, AT_SYMLINK_NOFOLLOW) == -1)
        return "fchmodat";
    if (group != (gid_t)-1 && lchown(path, (uid_t)-1, group) == -1)
        return "lchown";
    return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == -1 ? "fchmodat" : NULL;
}

/* Returns NULL, or the name of the failed call, with errno. */
static const char *open_aside(struct control_socket *control, const struct sockaddr_un *aside)
{
    const struct control_rights *rights = &control->rights;
    const char *failed;
    struct stat st;
    mode_t mask;
    int status;

    control->fd = descriptor_socket(AF_UNIX, SOCK_STREAM, O_NONBLOCK);
    if (control->fd == -1)
        return "socket";
    os_rights_refuse(control->fd); /* inherited by its clients */
    if (unlink(aside->sun_path) == -1 && errno != ENOENT)
        return "unlink";
    mask = umask(0777 & ~MODE_ALONE); /* from the first moment on; does not change errno */
    status = bind(control->fd, (const struct sockaddr *)aside, sizeof(*aside));
    umask(mask);
    if (status == -1)
        return "bind";
    failed = rights->has_group ? set_rights(aside->sun_path, rights->group, rights->mode) : NULL;
    if (failed != NULL)
        return failed;
    if (listen(control->fd, BACKLOG) == -1)
        return "listen";
    if (lstat(aside->sun_path, &st) == -1)
        return "lstat";
    if (process_ops->wakeup_add(control->fd) == -1)
        return "fcntl";
    if (rename(aside->sun_path, control->path) == -1)
        return "rename";
    control->device = st.st_dev;
    control->inode = st.st_ino;
    return NULL;
}

/* Closes the descriptor; the file stays. */
static void close_control_socket(struct control_socket *control)
{
    if (control->fd != -1) {
        process_ops->wakeup_remove(control->fd);
        close(control->fd);
    }
    free(control->path);
    control_socket_init(control);
}

int control_socket_create(struct control_socket *control, const struct control_settings *settings,
    bool replace, struct log *log)
{
    const char *path = settings->path, *failed;
    struct sockaddr_un aside;

    assert(control->path == NULL && control->fd == -1);
    if (!replace && check_socket_replaceable(path, log) == -1)
        return -1;
    set_socket_address(&aside, path, NEW_SUFFIX);
    control->path = strdup(path);
    control->rights = settings->rights;
    failed = control->path == NULL ? "strdup" : open_aside(control, &aside);
    if (failed == NULL) {
        check_control_socket(control);
        return 0;
    }
    log_write(log, LEVEL_EMERG, errno, "%s() for the control socket \"%s\" failed", failed, path);
    if (control->fd != -1 && strcmp(failed, "bind") != 0) /* our file */
        unlink(aside.sun_path);
    close_control_socket(control);
    return -1;
}

int control_socket_allow(
    struct control_socket *control, const struct control_rights *rights, struct log *log)
{
    const struct control_rights *now = &control->rights;
    char name[PATH_MAX];
    const char *failed;
    int error;

    check_control_socket(control);
    if (control_socket_path(control, name) == NULL ||
        (now->mode == rights->mode && now->has_group == rights->has_group &&
            (!now->has_group || now->group == rights->group)))
        return 0;
    failed = set_rights(name, rights->has_group ? rights->group : getegid(), rights->mode);
    if (failed == NULL) {
        control->rights = *rights;
        return 0;
    }
    error = errno;
    log_write(log, LEVEL_EMERG, error, "%s() for the control socket \"%s\" failed", failed, name);
    set_rights(name, now->has_group ? now->group : (gid_t)-1, now->mode);
    return -1;
}

void control_socket_remove(struct control_socket *control, struct log *log)
{
    char name[PATH_MAX];

    check_control_socket(control);
    if (control_socket_path(control, name) == NULL)
        return;
    if (control_socket_is_at(control, name) && unlink(name) == -1)
        log_write(log, LEVEL_ALERT, errno, "unlink() \"%s\" failed", name);
    close_control_socket(control);
}

void control_socket_add_name(struct control_socket *control, const char *suffix, struct log *log)
{
    char name[PATH_MAX], second[PATH_MAX];

    check_control_socket(control);
    assert(strlen(suffix) < sizeof(control->second));
    if (control_socket_path(control, name) == NULL)
        return;
    snprintf(second, sizeof(second), "%s%s", control->path, suffix);
    if ((unlink(second) == -1 && errno != ENOENT) || link(name, second) == -1)
        log_write(log, LEVEL_ERROR, errno, "link() \"%s\" to \"%s\" failed", name, second);
    if (control->left) /* the second name until now */
        unlink(name);
    strcpy(control->second, suffix);
}

void control_socket_leave_path(struct control_socket *control)
{
    check_control_socket(control);
    if (control->path == NULL || control->left)
        return;
    if (control_socket_is_at(control, control->path)) /* unless the new process has another path */
        unlink(control->path);
    control->left = true;
}

void control_socket_restore_path(struct control_socket *control, struct log *log)
{
    char name[PATH_MAX];

    check_control_socket(control);
    if (control->second[0] == '\0')
        return;
    snprintf(name, sizeof(name), "%s%s", control->path, control->second);
    control->left = false;
    control->second[0] = '\0';
    if (!control_socket_is_at(control, control->path) && rename(name, control->path) == -1)
        log_write(log, LEVEL_ERROR, errno, "rename() \"%s\" to \"%s\" failed", name, control->path);
    if (unlink(name) == -1 && errno != ENOENT)
        log_write(log, LEVEL_ERROR, errno, "unlink() \"%s\" failed", name);
}
