/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the words of the protocol, which sd_notify(3) describes for those who speak it themselves.
 * The manager's address is stored here and removed from the environment, so that no child process
 * can send messages in our name. */
#include "systemd/notify.h"

#include "base/number.h"
#include "base/utf8.h"
#include "systemd/notify_queue.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SOCKET "NOTIFY_SOCKET"
#define INTERVAL "WATCHDOG_USEC"
#define INTERVAL_PID "WATCHDOG_PID"
#define WAIT_MS 5 /* between two looks of notify_wait() */

static struct notify_queue queue = { .barrier = -1, .socket = { .fd = -1 } };
static char *address; /* for a binary after us, which may know more kinds of it; or NULL */
static int64_t interval_us;

/* The interval at which the manager wants to hear from this process; 0: from none, or another. */
static int64_t read_interval(void)
{
    const char *text = getenv(INTERVAL), *of = getenv(INTERVAL_PID);
    int64_t us, pid;

    if (of != NULL && (number_parse(of, 1, INT_MAX, &pid) != NUMBER_OK || pid != getpid()))
        return 0;
    return text != NULL && number_parse(text, 1, INT64_MAX, &us) == NUMBER_OK ? us : 0;
}

void notify_init(struct log *log)
{
    const char *value = getenv(SOCKET);

    notify_queue_done(&queue);
    free(address);
    address = value != NULL && *value != '\0' ? strdup(value) : NULL;
    interval_us = read_interval();
    unsetenv(SOCKET);
    unsetenv(INTERVAL);
    unsetenv(INTERVAL_PID);
    notify_queue_init(&queue, address, log);
}

void notify_attend(struct timers *timers, struct log *log)
{
    notify_queue_attend(&queue, timers, log);
}

bool notify_is_on(void)
{
    return queue.name != NULL;
}

/* The manager counts the watchdog's interval for its main process: no pid is put back. */
int notify_hand_on(void)
{
    char text[24];

    if (address == NULL)
        return 0;
    snprintf(text, sizeof(text), "%" PRId64, interval_us);
    if (interval_us > 0 && setenv(INTERVAL, text, 1) == -1)
        return -1;
    return setenv(SOCKET, address, 1);
}

void notify_forget(void)
{
    notify_queue_done(&queue);
    free(address);
    address = NULL;
}

void notify_ready(struct log *log)
{
    notify_queue_push(&queue, log, NOTIFY_READY, "READY=1", -1);
}

void notify_reloading(struct log *log)
{
    struct timespec now;
    char state[64];

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
        (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    notify_queue_push(&queue, log, NOTIFY_RELOADING, state, -1);
}

void notify_stopping(struct log *log)
{
    notify_queue_push(&queue, log, NOTIFY_STOPPING, "STOPPING=1", -1);
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
    notify_queue_push(&queue, log, NOTIFY_STATUS, state, -1);
}

void notify_mainpid(struct log *log, pid_t pid)
{
    char state[32];

    snprintf(state, sizeof(state), "MAINPID=%d", (int)pid);
    notify_queue_push(&queue, log, NOTIFY_MAIN_PID, state, -1);
}

bool notify_cancel_mainpid(void)
{
    return notify_queue_cancel(&queue, NOTIFY_MAIN_PID);
}

uint64_t notify_interval(void)
{
    return notify_is_on() ? (uint64_t)interval_us / 1000 : 0;
}

void notify_alive(struct log *log)
{
    notify_queue_push(&queue, log, NOTIFY_ALIVE, "WATCHDOG=1", -1);
}

/* FDPOLL=0: nothing happens on a listening socket that would make the copy useless. */
int notify_store(struct log *log, const char *name, int fd)
{
    char state[320];

    snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
    return notify_queue_push(&queue, log, NOTIFY_STORE, state, fd);
}

int notify_unstore(struct log *log, const char *name)
{
    char state[320];

    snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
    return notify_queue_push(&queue, log, NOTIFY_UNSTORE, state, -1);
}

bool notify_is_waiting(void)
{
    return notify_queue_is_waiting(&queue);
}

bool notify_confirm(struct log *log)
{
    if (notify_queue_is_confirmed(&queue))
        return true;
    notify_queue_advance(&queue, log);
    return notify_queue_is_confirmed(&queue);
}

void notify_wait(struct log *log)
{
    int left_ms = NOTIFY_EXIT_MS;

    for (; left_ms > 0 && !notify_confirm(log); left_ms -= WAIT_MS)
        poll(NULL, 0, WAIT_MS);
    if (left_ms <= 0)
        log_write(log, LEVEL_WARN, 0, NOTIFY_EXIT_LATE, NOTIFY_EXIT_MS);
}
