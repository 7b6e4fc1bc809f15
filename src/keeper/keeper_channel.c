/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles the master's messages, and asks for files, one at a time. While a file is asked for the
 * keeper waits, because nothing can be done without it; messages that come before are handled. */
#include "keeper/keeper_channel.h"

#include "configuration/logs.h"
#include "keeper/keeper_link.h"
#include "os/wakeup.h"
#include "process/process_ops.h"
#include "process/signals.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* Messages of the master in a turn. */
#define MESSAGES_A_TURN 64

/* Replaces a log's descriptor by the message's; the message then holds the old descriptor. */
static void exchange_keeper_log(struct keeper *keeper, struct channel_message *message)
{
    struct core_settings *core = &keeper->heritage->cycle->core;

    if (message->argument >= core_target_n(core) || message->fd == -1)
        return;
    message->fd = logs_exchange(core_target(core, message->argument), message->fd);
    keeper->log.waiting = true; /* perhaps */
}

/* Sends the message of a report, until which the master asks for no other one. */
static bool send_unsent_report(struct channel_end *end)
{
    struct keeper *keeper = container_of(end, struct keeper, to_master);

    return channel_end_try(end, &keeper->report);
}

/* Writes what the engine knows of certificates; an empty report tells of a failure. */
static void send_report(struct keeper *keeper, int fd)
{
    char *text = NULL;
    size_t n = 0;

    keeper->report = (struct channel_message) { MESSAGE_REPORT, 0, -1 };
    if (keeper->engine != NULL && keeper->ops->report != NULL && fd != -1)
        text = keeper->ops->report(keeper->engine, &n);
    if (text != NULL && n <= TLS_REPORT_SIZE && write(fd, text, n) == (ssize_t)n)
        keeper->report.argument = (uint32_t)n;
    free(text);
    channel_end_send_more(&keeper->to_master);
}

static const char *handle_keeper_message(struct channel_end *end, struct channel_message *message)
{
    struct keeper *keeper = container_of(end, struct keeper, to_master);

    switch ((enum channel_message_kind)message->kind) {
    case MESSAGE_ACCEPT:
        channel_end_send(end, MESSAGE_ACCEPTING);
        keeper->files_changed = true; /* pairs that the start has not tried are tried now */
        break;
    case MESSAGE_LOG_FILE:
        exchange_keeper_log(keeper, message);
        break;
    case MESSAGE_LOG_LEVEL:
        heritage_override_log(keeper->heritage, &keeper->log);
        break;
    case MESSAGE_LINK:
        if (message->fd != -1)
            keeper_link_open(keeper, message->fd);
        return NULL;
    case MESSAGE_FILE:
        if (keeper->wanted.phase == WANTED_SENT) {
            keeper->wanted.phase = WANTED_CAME;
            keeper->wanted.fd = message->fd;
            keeper->wanted.error = (int)message->argument;
            return NULL;
        }
        if (keeper->file_came) /* not asked for */
            break;
        keeper->file_came = true;
        keeper->file = *message;
        return NULL;
    case MESSAGE_REPORT_WANTED:
        send_report(keeper, message->fd);
        break;
    case MESSAGE_FILES_CHANGED: /* may come while a file is read */
        keeper->files_changed = true;
        break;
    default:
        break;
    }
    if (message->fd != -1)
        close(message->fd);
    return NULL; /* the master breaks no rule */
}

static void report_unsent(struct channel_end *end, int error)
{
    struct keeper *keeper = container_of(end, struct keeper, to_master);

    log_write(&keeper->log, LEVEL_ALERT, error, "a message to the master could not be sent");
}

void keeper_channel_close(struct keeper *keeper)
{
    if (keeper->channel == NULL)
        return;
    channel_end_flush(&keeper->to_master);
    channel_end_close(&keeper->to_master);
    source_detach(&keeper->loop, keeper->channel);
    keeper->channel = NULL;
}

void keeper_advance(struct keeper *keeper, enum keeper_phase phase)
{
    if (phase <= keeper->phase)
        return;
    keeper->phase = phase;
    if (phase == KEEPER_DRAINING)
        channel_end_send(&keeper->to_master, MESSAGE_RELEASED);
}

/* Handles at most so many messages; false: the master has gone. */
static bool receive_from_master(struct keeper *keeper, unsigned most)
{
    const char *rule;
    enum channel_status status = channel_end_receive(&keeper->to_master, most, &rule);

    if (status != CHANNEL_CLOSED)
        return true;
    if (keeper->phase < KEEPER_ENDING)
        log_write(&keeper->log, LEVEL_ALERT, 0, "the master process has gone");
    keeper_channel_close(keeper);
    close(keeper->heritage->channel);
    keeper_advance(keeper, KEEPER_DRAINING);
    return false;
}

static void run_channel(struct loop *loop, struct source *source)
{
    struct keeper *keeper = container_of(loop, struct keeper, loop);

    assert(source == keeper->channel);
    receive_from_master(keeper, MESSAGES_A_TURN);
}

/* Waits for the channel, or a signal to end: -1 with errno. */
static int await_master(const struct keeper *keeper)
{
    const struct loop *loop = &keeper->loop;
    struct pollfd fds[] = {
        { .fd = keeper->channel->fd, .events = POLLIN },
        /* handlers write to a pipe where the wait takes no mask */
        { .fd = loop->signal_fd != -1 ? loop->signaler->fd : -1, .events = POLLIN },
    };

    while (fds[0].revents == 0) {
        if (os_wait_poll(fds, countof(fds), -1, loop->wait_mask) == -1 && errno != EINTR)
            return -1;
        if (keeper->phase == KEEPER_STARTING && /* later a turn is soon over */
            (signals_given(COMMAND_TERMINATE) || signals_given(COMMAND_TERM))) {
            errno = EINTR;
            return -1;
        }
    }
    return 0;
}

/* Ends a keeper that is stopped while it loads, or whose master has gone: that is no mistake in the
 * files still to come. */
static NORETURN void end_loading(void)
{
    process_ops->exit(EXIT_SUCCESS);
}

/* Waits for a message of the master; -1 with errno. */
static int await_message(struct keeper *keeper)
{
    if (await_master(keeper) == -1) {
        if (errno == EINTR)
            end_loading();
        return -1;
    }
    if (!receive_from_master(keeper, 1))
        end_loading();
    return 0;
}

static int open_by_master(struct tls_files *files, uint32_t index)
{
    struct keeper *keeper = container_of(files, struct keeper, files);
    const struct channel_message wanted = { MESSAGE_FILE_WANTED, index, -1 };

    assert(index < files->profiles->file_n);
    if (keeper->channel == NULL) /* gone while an earlier message was handled */
        end_loading();
    while (keeper->wanted.phase == WANTED_SENT) /* a keeper asks for one file at a time */
        if (await_message(keeper) == -1)
            return -1;
    keeper->file_came = false;
    if (!channel_end_try(&keeper->to_master, &wanted)) {
        keeper->file_came = true;
        errno = EAGAIN;
        return -1;
    }
    while (!keeper->file_came)
        if (await_message(keeper) == -1)
            return -1;
    errno = (int)keeper->file.argument;
    return keeper->file.fd;
}

static void want_by_master(struct tls_files *files, uint32_t index)
{
    struct keeper *keeper = container_of(files, struct keeper, files);

    assert(index < files->profiles->file_n && keeper->wanted.phase == WANTED_NONE);
    keeper->wanted = (struct keeper_wanted) { .phase = WANTED_UNSENT, .index = index };
}

bool keeper_channel_ask(struct keeper *keeper)
{
    struct keeper_wanted *wanted = &keeper->wanted;

    if (keeper->channel == NULL && wanted->phase != WANTED_NONE && wanted->phase != WANTED_CAME)
        *wanted = (struct keeper_wanted) { .phase = WANTED_CAME, .fd = -1, .error = EPIPE };
    if (wanted->phase == WANTED_CAME) {
        int fd = wanted->fd, error = wanted->error;

        wanted->phase = WANTED_NONE;
        keeper->ops->opened(keeper->engine, fd, error);
        keeper->resumes = true;
        keeper->resume_from = 0;
    }
    if (wanted->phase == WANTED_UNSENT && keeper->channel != NULL &&
        channel_end_try(&keeper->to_master,
            &(struct channel_message) { MESSAGE_FILE_WANTED, wanted->index, -1 }))
        wanted->phase = WANTED_SENT;
    return wanted->phase != WANTED_UNSENT;
}

/* Whether the keeper logs what all keepers of the generation find. */
static bool is_first_keeper(const struct keeper *keeper)
{
    const struct heritage *heritage = keeper->heritage;

    return heritage->index == (unsigned)heritage->cycle->core.worker_processes;
}

int keeper_channel_open(struct keeper *keeper)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_channel } };
    static const struct channel_end_ops end_ops = {
        .handle = handle_keeper_message,
        .send_more = send_unsent_report,
        .failed = report_unsent,
        .is_trusted = true,
    };
    struct source *source = source_get(&keeper->loop.sources);

    assert(source != NULL); /* the first of the loop's */
    source->fd = keeper->heritage->channel;
    source->io = &io_socket;
    source->ops = &ops;
    source->level = true;
    keeper->channel = source;
    keeper->file_came = true;
    keeper->files = (struct tls_files) {
        .open = open_by_master,
        .want = want_by_master,
        .tried = is_first_keeper(keeper) ? TLS_PAIRS_TRIED : 0,
        .pairs = keeper->heritage->pairs,
        .former_pairs = keeper->heritage->former_pairs,
        .profiles = &keeper->heritage->cycle->tls,
        .tickets = keeper->heritage->tickets,
        .quiet = !is_first_keeper(keeper),
    };
    channel_end_open(&keeper->to_master, source->fd, &end_ops, &keeper->loop.timers);
    if (source_watch_level(&keeper->loop, source, true, false) == 0)
        return 0;
    log_write(&keeper->log, LEVEL_EMERG, errno, "the channel to the master cannot be watched");
    return -1;
}
