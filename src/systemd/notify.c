/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the words of sd_notify(3). The manager's address is stored here and removed from the
 * environment, so that no child process can send messages in our name. */
#include "systemd/notify.h"

#include "base/number.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOCKET "NOTIFY_SOCKET"
#define INTERVAL "WATCHDOG_USEC"
#define INTERVAL_PID "WATCHDOG_PID"
#define WAIT_MS 5 /* between two looks of notify_wait() */

static struct notify own = NOTIFY_INITIAL;
struct notify *notify_state = &own;

/* Returns the watchdog interval for the process; 0: none. */
static int64_t read_interval(pid_t self)
{
    const char *text = getenv(INTERVAL), *of = getenv(INTERVAL_PID);
    int64_t us, pid;

    if (of != NULL && (number_parse(of, 1, INT_MAX, &pid) != NUMBER_OK || pid != self))
        return 0;
    return text != NULL && number_parse(text, 1, INT64_MAX, &us) == NUMBER_OK ? us : 0;
}

void notify_init(pid_t self, struct log *log)
{
    const char *value = getenv(SOCKET);

    notify_forget();
    if (value != NULL && *value != '\0' &&
        asprintf(&notify_state->socket, SOCKET "=%s", value) == -1)
        notify_state->socket = NULL;
    notify_state->interval_us = read_interval(self);
    notify_state->interval[0] = '\0';
    if (notify_state->interval_us > 0)
        snprintf(notify_state->interval, sizeof(notify_state->interval), INTERVAL "=%" PRId64,
            notify_state->interval_us);
    unsetenv(SOCKET);
    unsetenv(INTERVAL);
    unsetenv(INTERVAL_PID);
    notify_queue_init(&notify_state->queue,
        notify_state->socket != NULL ? notify_state->socket + sizeof(SOCKET) : NULL, log);
}

void notify_attend(struct timers *timers, struct log *log)
{
    notify_queue_attend(&notify_state->queue, timers, log);
}

bool notify_is_on(void)
{
    return notify_state->queue.name != NULL;
}

/* The manager applies the watchdog's interval to its main process: no pid is put back. */
void notify_hand_on(char *variables[NOTIFY_VARIABLES])
{
    unsigned n = 0;

    if (notify_state->socket != NULL)
        variables[n++] = notify_state->socket;
    if (notify_state->socket != NULL && notify_state->interval[0] != '\0')
        variables[n++] = notify_state->interval;
    while (n < NOTIFY_VARIABLES)
        variables[n++] = NULL;
}

void notify_forget(void)
{
    notify_queue_done(&notify_state->queue);
    free(notify_state->socket);
    notify_state->socket = NULL;
}

void notify_tell(struct log *log, enum notify_kind kind)
{
    static const char *const texts[] = {
        [NOTIFY_READY] = "READY=1",
        [NOTIFY_STOPPING] = "STOPPING=1",
        [NOTIFY_ALIVE] = "WATCHDOG=1",
    };

    notify_queue_push(&notify_state->queue, log, kind, texts[kind], -1);
}

void notify_reloading(struct log *log, const struct timespec *now)
{
    char state[64];

    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
        (uint64_t)now->tv_sec * 1000000 + (uint64_t)now->tv_nsec / 1000);
    notify_queue_push(&notify_state->queue, log, NOTIFY_RELOADING, state, -1);
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
    notify_queue_push(&notify_state->queue, log, NOTIFY_STATUS, state, -1);
}

void notify_mainpid(struct log *log, pid_t pid)
{
    char state[32];

    snprintf(state, sizeof(state), "MAINPID=%d", (int)pid);
    notify_queue_push(&notify_state->queue, log, NOTIFY_MAIN_PID, state, -1);
}

uint64_t notify_interval(void)
{
    return notify_is_on() ? (uint64_t)notify_state->interval_us / 1000 : 0;
}

int notify_store(struct log *log, const char *name, int fd)
{
    char state[320];

    /* FDPOLL=0: no event on a listening socket makes the copy useless */
    snprintf(state, sizeof(state), "%s\nFDNAME=%s",
        fd != -1 ? "FDSTORE=1\nFDPOLL=0" : "FDSTOREREMOVE=1", name);
    return notify_queue_push(
        &notify_state->queue, log, fd != -1 ? NOTIFY_STORE : NOTIFY_UNSTORE, state, fd);
}

bool notify_confirm(struct log *log)
{
    if (notify_queue_is_confirmed(&notify_state->queue))
        return true;
    notify_queue_advance(&notify_state->queue, log);
    return notify_queue_is_confirmed(&notify_state->queue);
}

void notify_wait(struct log *log, void (*sleep_for)(int ms))
{
    int left_ms = NOTIFY_EXIT_MS;

    for (; left_ms > 0 && !notify_confirm(log); left_ms -= WAIT_MS)
        sleep_for(WAIT_MS);
    if (left_ms <= 0)
        log_write(log, LEVEL_WARN, 0, NOTIFY_EXIT_LATE, NOTIFY_EXIT_MS);
}
