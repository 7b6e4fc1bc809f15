/* SPDX-License-Identifier: BSD-2-Clause */
/* select(2): sets of descriptors below FD_SETSIZE, and slots; EMFILE for a greater descriptor. */
#include "event/loop.h"
#include "os/wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/select.h>

struct select_state {
    fd_set watched[EVENT_DIRECTIONS];
    fd_set ready[EVENT_DIRECTIONS];
    int fd_n; /* the greatest descriptor watched, plus one */
    uint32_t slots[FD_SETSIZE];
};

static int select_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct select_state *state = loop->mechanism_state;

    assert(source->fd != -1);
    if (source->fd >= FD_SETSIZE) {
        errno = EMFILE;
        return -1;
    }
    FD_SET(source->fd, &state->watched[direction]);
    state->slots[source->fd] = source_index(&loop->sources, source);
    if (source->fd >= state->fd_n)
        state->fd_n = source->fd + 1;
    return 0;
}

static bool fd_is_watched(const struct select_state *state, int fd)
{
    return FD_ISSET(fd, &state->watched[EVENT_READ]) || FD_ISSET(fd, &state->watched[EVENT_WRITE]);
}

static void clear_direction(struct select_state *state, int fd, enum event_direction direction)
{
    assert(fd >= 0 && fd < FD_SETSIZE);
    FD_CLR(fd, &state->watched[direction]);
    while (state->fd_n > 0 && !fd_is_watched(state, state->fd_n - 1))
        state->fd_n--;
}

static int select_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    clear_direction(loop->mechanism_state, source->fd, direction);
    return 0;
}

static int select_del_conn(struct loop *loop, struct source *source, bool closing)
{
    const struct select_state *state = loop->mechanism_state;

    (void)closing;
    if (state->slots[source->fd] != source_index(&loop->sources, source))
        return 0; /* the descriptor was closed, and belongs to a newer source */
    clear_direction(loop->mechanism_state, source->fd, EVENT_READ);
    clear_direction(loop->mechanism_state, source->fd, EVENT_WRITE);
    return 0;
}

/* Takes closed descriptors out of the sets, after EBADF, and reports them: owners find out. */
static void repair_sets(struct loop *loop)
{
    struct select_state *state = loop->mechanism_state;

    for (int fd = state->fd_n - 1; fd >= 0; fd--) {
        struct source *source = source_at(&loop->sources, state->slots[fd]);

        if (!fd_is_watched(state, fd) || fcntl(fd, F_GETFD) != -1)
            continue;
        log_write(
            loop->log, LEVEL_ALERT, errno, "select() watched descriptor %d, which is not open", fd);
        log_debug_point(loop->log, "a source was closed under the mechanism");
        if (loop_owns(loop, source)) {
            loop_fail(loop, "select", EBADF);
            return;
        }
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++) {
            if (!FD_ISSET(fd, &state->watched[direction]))
                continue;
            clear_direction(state, fd, direction);
            loop_report(loop, source, direction);
        }
    }
}

static void select_process_events(struct loop *loop, int timeout)
{
    struct select_state *state = loop->mechanism_state;
    int left, fd, fd_n = state->fd_n;
    struct source *source;

    assert(fd_n <= FD_SETSIZE);
    state->ready[EVENT_READ] = state->watched[EVENT_READ];
    state->ready[EVENT_WRITE] = state->watched[EVENT_WRITE];
    left = os_wait_select(
        fd_n, &state->ready[EVENT_READ], &state->ready[EVENT_WRITE], timeout, loop->wait_mask);

    if (left == -1 && errno == EBADF)
        repair_sets(loop);
    else if (left <= 0)
        loop_check_wait(loop, "select", left, timeout);
    for (fd = 0; fd < fd_n && left > 0; fd++)
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++) {
            if (!FD_ISSET(fd, &state->ready[direction]))
                continue;
            left--;
            source = source_at(&loop->sources, state->slots[fd]);
            assert(source->in_use && source->fd == fd);
            loop_report(loop, source, direction);
        }
    if (left > 0)
        log_write(loop->log, LEVEL_ALERT, 0, "select() counted %d more ready than there are", left);
}

const struct mechanism mechanism_select = {
    .name = "select",
    .masks = LINUX_SYSTEM,
    .descriptors_max = FD_SETSIZE,
    .io = &io_socket,
    .state_size = sizeof(struct select_state),
    .add = select_add,
    .del = select_del,
    .enable = select_add,
    .disable = select_del,
    .del_conn = select_del_conn,
    .notify = loop_notify_descriptor,
    .process_events = select_process_events,
};
