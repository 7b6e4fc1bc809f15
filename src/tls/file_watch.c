/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches the files of profiles: see file_watch.h. Each look watches all directories again, which
 * may have vanished, come back, or been replaced by a link, before it looks at the files. */
#include "tls/file_watch.h"

#include "base/compiler.h"
#include "base/crc32.h"
#include "os/descriptor.h"
#include "os/directory_watch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Symbolic links on the way to a file, as many as the kernel follows. */
#define LINKS_MOST 40

/* The way to a file: a directory without symbolic links in its path, and what comes behind. */
struct watch_way {
    char directory[PATH_MAX]; /* "" is the root */
    char rest[2 * PATH_MAX];
    char next[PATH_MAX]; /* the path of the directory's entry that comes next */
};

/* Takes the next part of the rest; false: nothing is left, or the path is too long. */
static bool take_way_part(struct watch_way *way)
{
    char *part = way->rest + strspn(way->rest, "/");
    size_t n = strcspn(part, "/");
    int length = snprintf(way->next, sizeof(way->next), "%s/%.*s", way->directory, (int)n, part);

    memmove(way->rest, part + n, strlen(part + n) + 1);
    return n > 0 && length > 0 && (size_t)length < sizeof(way->next);
}

/* Puts the target of the link in the place of the link; false: there is no way. */
static bool follow_way_link(struct watch_way *way)
{
    char target[PATH_MAX];
    char rest[sizeof(way->rest)];
    ssize_t n = readlink(way->next, target, sizeof(target));
    int length;

    if (n <= 0 || (size_t)n >= sizeof(target))
        return false;
    if (target[0] == '/')
        way->directory[0] = '\0';
    length = snprintf(rest, sizeof(rest), "%.*s%s", (int)n, target, way->rest);
    memcpy(way->rest, rest, sizeof(rest));
    return length > 0 && (size_t)length < sizeof(rest);
}

/* Goes on into the directory's entry, or to its parent. */
static void enter_way_part(struct watch_way *way)
{
    const char *name = strrchr(way->next, '/') + 1;

    if (strcmp(name, "..") == 0)
        *(way->directory[0] != '\0' ? strrchr(way->directory, '/') : way->directory) = '\0';
    else if (strcmp(name, ".") != 0)
        memcpy(way->directory, way->next, sizeof(way->directory));
}

/* Watches the directory that the way has come to. */
static bool watch_directory(int fd, const struct watch_way *way, bool entries)
{
    return os_directory_watch_add(fd, way->directory[0] != '\0' ? way->directory : "/", entries) ==
           0;
}

/* Watches the directories of a path: the entries of those with a link, with the file, or with
 * nothing of the name, and moves of all. False: a directory cannot be watched. */
static bool watch_path(int fd, const char *path)
{
    struct watch_way way = { .directory = "" };
    bool all = true;
    struct stat status;

    snprintf(way.rest, sizeof(way.rest), "%s", path);
    for (unsigned links = 0; links < LINKS_MOST && take_way_part(&way);) {
        bool passes = lstat(way.next, &status) == 0 && S_ISDIR(status.st_mode);

        all = watch_directory(fd, &way, !passes) && all;
        /* the entry may have changed before the directory was watched */
        if (!passes && lstat(way.next, &status) == -1)
            return all;
        if (S_ISDIR(status.st_mode)) {
            enter_way_part(&way);
        } else {
            links++;
            if (!S_ISLNK(status.st_mode) || !follow_way_link(&way))
                return all;
        }
    }
    return all;
}

/* Whether a path is that of a file, and no link, in the directory of another path, whose watch is
 * enough: of thousands of files in a directory each costs one call. */
static bool is_watched_beside(const char *path, const char *other)
{
    const char *name = strrchr(path, '/');
    size_t n = name != NULL ? (size_t)(name - path) + 1 : 0;
    struct stat status;

    return n > 0 && strncmp(path, other, n) == 0 && strchr(other + n, '/') == NULL &&
           lstat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Watches the directories of all files; false: not all can be watched. */
static bool watch_paths(const struct tls_file_watch *watch)
{
    const struct tls_file *files = watch->profiles->files;
    bool all = watch->fd != -1;

    for (uint32_t i = 0; watch->fd != -1 && i < watch->profiles->file_n; i++)
        if (!files[i].appends && (i == 0 || files[i - 1].appends ||
                                     !is_watched_beside(files[i].path, files[i - 1].path)))
            all = watch_path(watch->fd, files[i].path) && all;
    return all;
}

/* Returns a checksum of what tells a file from another, and from itself before a change. */
static uint32_t sum_file(uint32_t sum, const char *path)
{
    struct stat status;
    uint64_t fields[] = { 0, 0, 0, 0, 0, 0, 0 };

    if (stat(path, &status) == -1) {
        fields[0] = (uint64_t)errno;
    } else {
        fields[0] = (uint64_t)status.st_dev;
        fields[1] = (uint64_t)status.st_ino;
        fields[2] = (uint64_t)status.st_size;
        fields[3] = (uint64_t)status.st_mtim.tv_sec;
        fields[4] = (uint64_t)status.st_mtim.tv_nsec;
        fields[5] = (uint64_t)status.st_ctim.tv_sec;
        fields[6] = (uint64_t)status.st_ctim.tv_nsec;
    }
    return crc32_add(sum, fields, sizeof(fields));
}

/* Watches all directories again, looks at the files, and has them looked at again in time: after a
 * change, or where not all directories can be watched. Returns whether there was a change. */
static bool look_at_files(struct tls_file_watch *watch)
{
    const struct tls_profiles *profiles = watch->profiles;
    uint32_t sum = 0;
    bool all = watch_paths(watch), changed;

    for (uint32_t i = 0; i < profiles->file_n; i++)
        if (!profiles->files[i].appends)
            sum = sum_file(sum, profiles->files[i].path);
    changed = watch->begun && sum != watch->seen;
    watch->seen = sum;
    watch->begun = true;
    if (changed || !all)
        timers_arm(watch->timers, &watch->look, changed ? WATCH_QUIET_MS : WATCH_OFTEN_MS);
    return changed;
}

static void watch_look_expired(struct loop *loop, struct timer *timer)
{
    struct tls_file_watch *watch = container_of(timer, struct tls_file_watch, look);
    bool before = watch->changes;

    (void)loop;
    watch->soon = watch->changes = look_at_files(watch);
    if (before && !watch->changes)
        watch->changed(watch);
}

void tls_file_watch_open(struct tls_file_watch *watch, const struct tls_profiles *profiles,
    struct timers *timers, void (*changed)(struct tls_file_watch *watch))
{
    *watch = (struct tls_file_watch) {
        .profiles = profiles,
        .timers = timers,
        .changed = changed,
        .fd = os_directory_watch_open(),
        .look = { .expired = watch_look_expired },
    };
    look_at_files(watch);
}

void tls_file_watch_take(struct tls_file_watch *watch)
{
    assert(watch->profiles != NULL);
    if (watch->fd == -1 || !os_directory_watch_take(watch->fd) || watch->soon)
        return;
    watch->soon = true;
    timers_arm(watch->timers, &watch->look, WATCH_LOOK_MS);
}

void tls_file_watch_close(struct tls_file_watch *watch)
{
    if (watch->profiles == NULL)
        return;
    timers_disarm(watch->timers, &watch->look);
    descriptor_close(watch->fd);
    *watch = (struct tls_file_watch) { .fd = -1 };
}
