/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces notify.c in a build without libsystemd: no message is ever sent, and the variables of
 * the service manager are still removed from the environment. */
#include "base/compiler.h"
#include "systemd/notify.h"

#include <stdlib.h>

/* Removes the variables all the same, so that no child speaks for us. */
void notify_init(void)
{
    static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC" };

    for (size_t i = 0; i < countof(names); i++)
        unsetenv(names[i]);
}

bool notify_is_on(void)
{
    return false;
}

int notify_hand_on(void)
{
    return 0;
}

void notify_forget(void)
{
}

void notify_ready(struct log *log)
{
    (void)log;
}

void notify_reloading(struct log *log)
{
    (void)log;
}

void notify_stopping(struct log *log)
{
    (void)log;
}

void notify_status(struct log *log, const char *text)
{
    (void)log;
    (void)text;
}

void notify_mainpid(struct log *log, pid_t pid)
{
    (void)log;
    (void)pid;
}

uint64_t notify_interval(void)
{
    return 0;
}

void notify_alive(struct log *log)
{
    (void)log;
}

int notify_store(struct log *log, const char *name, int fd)
{
    (void)log;
    (void)name;
    (void)fd;
    return -1;
}

int notify_unstore(struct log *log, const char *name)
{
    (void)log;
    (void)name;
    return -1;
}
