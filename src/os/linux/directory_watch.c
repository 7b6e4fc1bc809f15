/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of directories by inotify. Writing is told when the file is closed, so that files which
 * are always written, as logs are, tell nothing. */
#include "os/directory_watch.h"

#include <errno.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <unistd.h>

#define OWN_CHANGES (IN_DELETE_SELF | IN_MOVE_SELF)
#define CHANGES (IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVE)

int os_directory_watch_open(void)
{
    return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

int os_directory_watch_add(int watch, const char *directory, bool entries)
{
    uint32_t changes = OWN_CHANGES | (entries ? CHANGES : 0);

    return inotify_add_watch(watch, directory, changes | IN_MASK_ADD | IN_ONLYDIR) == -1 ? -1 : 0;
}

bool os_directory_watch_take(int watch)
{
    char events[4096];
    bool any = false;
    ssize_t n;

    do {
        n = read(watch, events, sizeof(events));
        any = any || n > 0;
    } while (n > 0 || (n == -1 && errno == EINTR));
    return any;
}
