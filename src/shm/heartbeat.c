/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of callbacks, which the master logs when a worker is stuck or has died. */
#include "shm/heartbeat.h"

const char *const heartbeat_callback_names[CALLBACKS] = {
    [CALLBACK_OPENED] = "opened",
    [CALLBACK_DATA] = "data",
    [CALLBACK_EOF] = "eof",
    [CALLBACK_WRITABLE] = "writable",
    [CALLBACK_TIMER] = "timer",
    [CALLBACK_DRAINING] = "draining",
    [CALLBACK_MESSAGE] = "message",
    [CALLBACK_ANSWERED] = "answered",
    [CALLBACK_CLOSED] = "closed",
    [CALLBACK_DONE] = "done",
    [CALLBACK_RELEASE] = "release",
    [CALLBACK_WORKER_START] = "worker_start",
    [CALLBACK_WORKER_STOP] = "worker_stop",
};
