/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's ends of the channels. */
#include "master/master.h"

#include "process/logs.h"

#include <errno.h>
#include <unistd.h>

static void send_message(
    struct fb_master *master, struct fb_seat *seat, const struct fb_message *message)
{
    if (seat->channel == -1 || fb_channel_send(seat->channel, message) == 0)
        return;
    if (errno != EPIPE) /* one that has died is reaped */
        fb_log(
            &master->log, FB_ALERT, errno, "worker process %d could not be told", (int)seat->pid);
}

void fb_seat_tell(struct fb_master *master, struct fb_seat *seat, enum fb_message_kind kind)
{
    struct fb_message message = { .kind = kind, .fd = -1 };

    send_message(master, seat, &message);
}

void fb_master_spread_look(struct fb_master *master, const struct fb_seat *except)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++)
            if (generation->seats[i].state == FB_SEAT_ARMED && &generation->seats[i] != except)
                fb_seat_tell(master, &generation->seats[i], FB_MESSAGE_LOOK);
}

/* Returns whether the generation's state has changed. */
static bool hear(struct fb_master *master, struct fb_generation *generation, struct fb_seat *seat,
    const struct fb_message *message)
{
    if (message->fd != -1)
        close(message->fd);
    switch ((enum fb_message_kind)message->kind) {
    case FB_MESSAGE_READY:
        seat->state = FB_SEAT_READY;
        if (generation == master->live ||
            (generation == master->starting && master->committed)) /* a replacement */
            fb_seat_tell(master, seat, FB_MESSAGE_ARM);
        return true;
    case FB_MESSAGE_ARMED:
        seat->state = FB_SEAT_ARMED;
        return true;
    case FB_MESSAGE_LOOK:
        fb_master_spread_look(master, seat);
        return false;
    default:
        return false;
    }
}

void fb_master_listen_to_workers(struct fb_master *master)
{
    struct fb_generation *generation;
    struct fb_message message;
    bool changed = false;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++) {
            struct fb_seat *seat = &generation->seats[i];

            while (seat->channel != -1 &&
                   fb_channel_receive(seat->channel, &message) == FB_CHANNEL_DONE)
                changed = hear(master, generation, seat, &message) || changed;
        }
    if (changed && master->starting != NULL)
        fb_generation_advance(master);
}

static void hand_out_logs(struct fb_master *master, struct fb_generation *generation)
{
    const struct fb_core_settings *core = &generation->cycle->core;

    for (unsigned i = 0; i < generation->seat_n; i++)
        for (unsigned log = 0; log < core->log_n; log++) {
            struct fb_message message = {
                .kind = FB_MESSAGE_REOPEN,
                .argument = log,
                .fd = core->logs[log].fd,
            };

            if (core->logs[log].path != NULL)
                send_message(master, &generation->seats[i], &message);
        }
}

void fb_master_reopen_logs(struct fb_master *master)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link) {
        fb_logs_reopen(&generation->cycle->core, &master->log);
        hand_out_logs(master, generation);
    }
}
