/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces notify.c where the daemon is built without libsystemd: no message is ever sent. */
#include "base/compiler.h"
#include "systemd/notify.h"

#include <stdlib.h>

/* Removes the variables all the same, so that no child speaks for us. */
void fb_notify_init(void)
{
    static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC" };

    for (size_t i = 0; i < fb_countof(names); i++)
        unsetenv(names[i]);
}

bool fb_notify_is_on(void)
{
    return false;
}

int fb_notify_hand_on(void)
{
    return 0;
}

void fb_notify_ready(struct fb_log *log)
{
    (void)log;
}

void fb_notify_reloading(struct fb_log *log)
{
    (void)log;
}

void fb_notify_stopping(struct fb_log *log)
{
    (void)log;
}

void fb_notify_status(struct fb_log *log, const char *text)
{
    (void)log;
    (void)text;
}

void fb_notify_mainpid(struct fb_log *log, pid_t pid)
{
    (void)log;
    (void)pid;
}

uint64_t fb_notify_interval(void)
{
    return 0;
}

void fb_notify_alive(struct fb_log *log)
{
    (void)log;
}

int fb_notify_store(struct fb_log *log, const char *name, int fd)
{
    (void)log;
    (void)name;
    (void)fd;
    return -1;
}

int fb_notify_remove(struct fb_log *log, const char *name)
{
    (void)log;
    (void)name;
    return -1;
}
