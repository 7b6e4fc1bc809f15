/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes debug lines of events, with --enable-debug alone. Changes nothing, and keeps errno. */
#include "event/debug.h"

#include "event/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/* Bytes of a line's words of flags. */
#define FLAGS_TEXT 160

const struct debug_flag debug_poll_words[] = {
    { POLLIN, "in" },
    { POLLOUT, "out" },
    { POLLHUP, "hup" },
    { POLLERR, "err" },
    { POLLNVAL, "nval" },
    { 0, NULL },
};

const char *debug_direction(unsigned direction)
{
    assert(direction < EVENT_DIRECTIONS);
    return direction == EVENT_READ ? "read" : "write";
}

const char *debug_queue(unsigned queue)
{
    static const char *const names[] = {
        [QUEUE_NONE] = "no",
        [QUEUE_ACCEPT] = "accept",
        [QUEUE_NORMAL] = "normal",
        [QUEUE_NEXT] = "next",
        [QUEUE_FLUSH] = "flush",
        [QUEUE_FOUND] = "normal",
    };

    static_assert(countof(names) == QUEUES, "every queue has a name");
    assert(queue < QUEUES);
    return names[queue];
}

static bool is_simulated(const struct loop *loop)
{
    return loop->mechanism->self != NULL;
}

static void PRINTF_FORMAT(2, 0) put(const struct loop *loop, const char *format, va_list args)
{
    static const struct log_line line = { .level = LEVEL_DEBUG };

    if (loop != NULL && loop->log->level >= LEVEL_DEBUG && !is_simulated(loop))
        log_vput(loop->log, &line, format, args);
}

void debug_put_loop(const struct loop *loop, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put(loop, format, args);
    va_end(args);
}

void debug_put_source(const struct loop *loop, const struct source *source, const char *format, ...)
{
    int error = errno;
    va_list args;

    assert(source->in_use);
    if (is_simulated(loop))
        return;
    va_start(args, format);
    if (source->ops != NULL && source->ops->debug != NULL)
        source->ops->debug(source, format, args);
    else
        put(loop, format, args);
    va_end(args);
    errno = error;
}

void debug_put_flags(const struct loop *loop, const struct source *source, const char *what,
    uint32_t flags, const struct debug_flag *table)
{
    char text[FLAGS_TEXT] = "";
    uint32_t left = flags;
    size_t n = 0;

    for (; table->word != NULL && n < sizeof(text); table++)
        if ((flags & table->bits) == table->bits) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", table->word);
            left &= ~table->bits;
        }
    if (left != 0 && n < sizeof(text))
        snprintf(text + n, sizeof(text) - n, " 0x%x", left);
    debug_put_source(loop, source, "descriptor %d: %s%s", source->fd, what, text);
}

void debug_put_wait(const struct loop *loop, int timeout)
{
    if (timeout == -1)
        debug_put_loop(loop, "%s waits for ever", loop->mechanism->name);
    else if (timeout > 0)
        debug_put_loop(loop, "%s waits for %d ms at most", loop->mechanism->name, timeout);
}

void debug_put_waited(const struct loop *loop, int timeout, uint64_t before)
{
    if (timeout != 0)
        debug_put_loop(loop, "%s has waited, the clock moves on by %" PRIu64 " ms",
            loop->mechanism->name, loop->clock.mono_ms - before);
}
