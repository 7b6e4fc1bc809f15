/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's ends of the channels. */
#include "master/master.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void fb_seat_send(struct fb_master *master, struct fb_seat *seat, const struct fb_message *message)
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

    fb_seat_send(master, seat, &message);
}

void fb_seat_arm(
    struct fb_master *master, const struct fb_generation *generation, struct fb_seat *seat)
{
    fb_seat_expect(master, generation, seat);
    fb_seat_tell(master, seat, FB_MESSAGE_ARM);
}

void fb_master_spread_look(struct fb_master *master, const struct fb_seat *except)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++)
            if (generation->seats[i].state == FB_SEAT_ARMED && &generation->seats[i] != except)
                fb_seat_tell(master, &generation->seats[i], FB_MESSAGE_LOOK);
}

/* A worker asks for the inbox of another. */
struct fb_want {
    STAILQ_ENTRY(fb_want) link;
    struct fb_seat *seat;
    uint32_t life;
};

static void note_want(struct fb_master *master, struct fb_seat *seat, uint32_t life)
{
    struct fb_message gone = { .kind = FB_MESSAGE_GONE, .argument = life, .fd = -1 };
    struct fb_want *want = malloc(sizeof(*want));

    if (want == NULL) {
        fb_seat_send(master, seat, &gone);
        return;
    }
    *want = (struct fb_want) { .seat = seat, .life = life };
    STAILQ_INSERT_TAIL(&master->wants, want, link);
}

static int inbox_of(const struct fb_master *master, uint32_t life)
{
    const struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++)
            if (generation->seats[i].pid > 0 && fb_slot_life(generation->seats[i].slot) == life)
                return generation->seats[i].inbox;
    return -1;
}

/* Returns whether there were any. */
static bool answer_wants(struct fb_master *master, struct fb_wants *wants)
{
    bool any = !STAILQ_EMPTY(wants);
    struct fb_want *want;

    while ((want = STAILQ_FIRST(wants)) != NULL) {
        struct fb_message message = {
            .kind = FB_MESSAGE_PEER, .argument = want->life, .fd = inbox_of(master, want->life)
        };

        if (message.fd == -1)
            message.kind = FB_MESSAGE_GONE;
        fb_seat_send(master, want->seat, &message);
        STAILQ_REMOVE_HEAD(wants, link);
        free(want);
    }
    return any;
}

void fb_master_spread_death(struct fb_master *master, const struct fb_seat *seat)
{
    struct fb_message gone = {
        .kind = FB_MESSAGE_GONE, .argument = fb_slot_life(seat->slot), .fd = -1
    };
    struct fb_generation *generation;

    if (seat->inbox == -1)
        return;
    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++)
            if (&generation->seats[i] != seat)
                fb_seat_send(master, &generation->seats[i], &gone);
}

static void take_inbox(struct fb_seat *seat, struct fb_message *message)
{
    if (seat->inbox != -1 || message->fd == -1)
        return;
    seat->inbox = message->fd;
    message->fd = -1;
}

/* It has come as far as was expected of it. */
static void advance(
    const struct fb_generation *generation, struct fb_seat *seat, enum fb_seat_state state)
{
    if (seat->state < state)
        seat->state = state;
    if (!generation->closing)
        seat->kill_ms = 0;
}

/* Returns whether the generation's state has changed. */
static bool hear(struct fb_master *master, struct fb_generation *generation, struct fb_seat *seat,
    struct fb_message *message)
{
    switch ((enum fb_message_kind)message->kind) {
    case FB_MESSAGE_READY:
        advance(generation, seat, FB_SEAT_READY);
        if (generation == master->live ||
            (generation == master->starting && master->committed)) /* a replacement */
            fb_seat_arm(master, generation, seat);
        return true;
    case FB_MESSAGE_ARMED:
        advance(generation, seat, FB_SEAT_ARMED);
        if (generation->draining && !generation->closing) /* its listeners are gone again */
            kill(seat->pid, SIGQUIT);
        return true;
    case FB_MESSAGE_CLOSED:
        seat->state = FB_SEAT_CLOSED;
        return false;
    case FB_MESSAGE_LOOK:
        fb_master_spread_look(master, seat);
        upgrade_send_rescan(&master->upgrade);
        return false;
    case FB_MESSAGE_BROKEN:
        fb_master_note_broken(master, generation, message->argument);
        return false;
    case FB_MESSAGE_INBOX:
        take_inbox(seat, message);
        return false;
    case FB_MESSAGE_WANT:
        note_want(master, seat, message->argument);
        return false;
    default:
        return false;
    }
}

static bool hear_all(struct fb_master *master)
{
    struct fb_generation *generation;
    struct fb_message message;
    bool changed = false;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++) {
            struct fb_seat *seat = &generation->seats[i];

            while (seat->channel != -1 &&
                   fb_channel_receive(seat->channel, &message) == FB_CHANNEL_DONE) {
                changed = hear(master, generation, seat, &message) || changed;
                if (message.fd != -1)
                    close(message.fd);
            }
        }
    return changed;
}

void fb_master_listen_to_workers(struct fb_master *master)
{
    bool changed = hear_all(master);

    /* who wants an inbox has learned of it after it was sent to us: one more look finds it */
    for (;;) {
        struct fb_wants wants = STAILQ_HEAD_INITIALIZER(wants);

        STAILQ_CONCAT(&wants, &master->wants);
        if (!STAILQ_EMPTY(&wants))
            changed = hear_all(master) || changed;
        if (!answer_wants(master, &wants))
            break;
    }
    if (changed && master->starting != NULL)
        fb_generation_advance(master);
}
