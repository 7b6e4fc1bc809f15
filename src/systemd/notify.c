/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends the service manager's messages by libsystemd. The manager's address is stored here and
 * removed from the environment, so that no child process can send messages in our name. */
#include "systemd/notify.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#define SOCKET "NOTIFY_SOCKET"
#define INTERVAL "WATCHDOG_USEC"

static char *manager[2]; /* an environment: "NOTIFY_SOCKET=..." and no more, or nothing */
static uint64_t interval_us;
static bool failing; /* the latest message could not be sent, which was logged */

void notify_init(void)
{
    const char *address = getenv(SOCKET);

    free(manager[0]);
    if (sd_watchdog_enabled(1, &interval_us) <= 0)
        interval_us = 0;
    if (address == NULL || *address == '\0' || asprintf(&manager[0], SOCKET "=%s", address) == -1)
        manager[0] = NULL;
    unsetenv(SOCKET);
}

bool notify_is_on(void)
{
    return manager[0] != NULL;
}

/* The manager counts the watchdog's interval for its main process: no pid is put back. */
int notify_hand_on(void)
{
    char text[24];

    if (manager[0] == NULL)
        return 0;
    snprintf(text, sizeof(text), "%" PRIu64, interval_us);
    if (interval_us > 0 && setenv(INTERVAL, text, 1) == -1)
        return -1;
    return setenv(SOCKET, strchr(manager[0], '=') + 1, 1);
}

/* Sends with an environment that holds the manager's address alone, which is where libsystemd
 * finds it. */
static int send_state(struct log *log, const char *state, const int *fds, unsigned n)
{
    char **saved = environ;
    int result;

    if (manager[0] == NULL)
        return -1;
    environ = manager;
    result = sd_pid_notify_with_fds(0, 0, state, fds, n);
    environ = saved;
    if (result < 0 && !failing)
        log_write(
            log, LEVEL_ERROR, -result, "the service manager (%s) cannot be reached", manager[0]);
    failing = result < 0;
    return result > 0 ? 0 : -1;
}

void notify_forget(void)
{
    free(manager[0]);
    manager[0] = NULL;
}

void notify_ready(struct log *log)
{
    send_state(log, "READY=1", NULL, 0);
}

void notify_reloading(struct log *log)
{
    struct timespec now;
    char state[64];

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
        (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    send_state(log, state, NULL, 0);
}

void notify_stopping(struct log *log)
{
    send_state(log, "STOPPING=1", NULL, 0);
}

void notify_status(struct log *log, const char *text)
{
    char state[sizeof("STATUS=") + NOTIFY_STATUS_MAX] = "STATUS=";
    size_t n = strlen(state);

    while (*text != '\0') {
        size_t bytes = utf8_character(text);

        if (n + (bytes > 0 ? bytes : 1) >= sizeof(state))
            break;
        if (bytes == 0 || (unsigned char)*text < 0x20 || *text == 0x7f) {
            state[n++] = '?';
            text++;
            continue;
        }
        memcpy(state + n, text, bytes);
        n += bytes;
        text += bytes;
    }
    state[n] = '\0';
    send_state(log, state, NULL, 0);
}

void notify_mainpid(struct log *log, pid_t pid)
{
    char state[32];

    snprintf(state, sizeof(state), "MAINPID=%d", (int)pid);
    send_state(log, state, NULL, 0);
}

uint64_t notify_interval(void)
{
    return manager[0] != NULL ? interval_us / 1000 : 0;
}

void notify_alive(struct log *log)
{
    send_state(log, "WATCHDOG=1", NULL, 0);
}

/* FDPOLL=0: nothing happens on a listening socket that would make the copy useless. */
int notify_store(struct log *log, const char *name, int fd)
{
    char state[320];

    snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
    return send_state(log, state, &fd, 1);
}

int notify_unstore(struct log *log, const char *name)
{
    char state[320];

    snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
    return send_state(log, state, NULL, 0);
}
