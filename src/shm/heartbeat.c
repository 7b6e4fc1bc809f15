/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of callbacks, for the log line of the master about a worker that is stuck. */
#include "shm/heartbeat.h"

const char *const fb_callback_names[FB_CALLBACKS] = {
    [FB_CALLBACK_OPENED] = "opened",
    [FB_CALLBACK_DATA] = "data",
    [FB_CALLBACK_EOF] = "eof",
    [FB_CALLBACK_WRITABLE] = "writable",
    [FB_CALLBACK_TIMER] = "timer",
    [FB_CALLBACK_DRAINING] = "draining",
    [FB_CALLBACK_MESSAGE] = "message",
    [FB_CALLBACK_ANSWERED] = "answered",
    [FB_CALLBACK_CLOSED] = "closed",
    [FB_CALLBACK_DONE] = "done",
    [FB_CALLBACK_RELEASE] = "release",
    [FB_CALLBACK_WORKER_STOP] = "worker_stop",
};
