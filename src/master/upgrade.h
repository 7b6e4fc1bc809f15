/* SPDX-License-Identifier: BSD-2-Clause */
/* A change of the binary: the master process starts the newer one, which takes the listening sockets
 * over and serves beside it, until one of the two is told to quit. They are linked, so that each knows
 * what the other has. Private to master/. */
#pragma once

#include "base/json.h"
#include "net/listener.h"
#include "process/handover.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct master;

struct fb_upgrade {
    enum {
        FB_UPGRADE_NONE, /* we are the only one */
        FB_UPGRADE_OLD,  /* we have started another */
        FB_UPGRADE_NEW,  /* another has started us */
    } role;
    bool serves; /* the new one does */
    bool main;   /* the service manager listens to us: as the other one has told us */
    pid_t other;
    int link; /* to it; -1: it has gone */
    char *in; /* of its message that has not ended yet */
    size_t in_n, in_size;
    uint64_t *sockets; /* that it listens on, by their inodes */
    unsigned socket_n;
    char *control;        /* where the old one's control socket was; of a new one */
    uint64_t deadline_ms; /* of a new one that does not serve yet; 0: none */
    bool late;            /* it has met it */
    bool told_to_end;     /* and is killed next */
    struct fb_told *told; /* why the new one could not start, or NULL */
    uint32_t told_round;
};

/* What the start was given. */
void fb_upgrade_init(struct master *master, struct fb_inheritance *inheritance);
/* Begins one that was asked for, or refuses it. */
void fb_upgrade_begin(struct master *master);
/* Whether a new binary runs and does not serve yet. */
bool fb_upgrade_is_pending(const struct master *master);
/* Whether the pid file and the control socket have made way for those of the new one. */
bool fb_upgrade_has_made_way(const struct master *master);
/* Whether we are the service manager's main process, which alone is listened to. */
bool fb_upgrade_is_main(const struct master *master);
/* Whether that process is the new one: then it has ended, and we are the only one again. */
bool fb_upgrade_reaped(struct master *master, pid_t pid, int status);
void fb_upgrade_meet_deadline(struct master *master, uint64_t *next);
/* The daemon begins to end, and has not closed its listeners yet; with `both` the other one shall end
 * too, as the service manager ends the service, and knows of one process alone. */
void fb_upgrade_ending(struct master *master, bool gracefully, bool both);
/* It ends: if the other one still does, that is the main process. */
void fb_upgrade_ended(struct master *master);
/* In a child: lets go of the link. */
void fb_upgrade_forget(struct master *master);
/* At the end: of all of it. */
void fb_upgrade_done(struct master *master);

/* The link (upgrade_link.c): an object of JSON a line. Each tells the other which sockets it has. */

/* Receives all that has come. */
void fb_upgrade_listen(struct master *master);
/* Another generation serves. */
void fb_upgrade_announce(struct master *master);
/* The other one is the main process from now on. */
void fb_upgrade_tell_main(struct master *master);
/* Has the other one's workers look at their listeners, from which one of ours steps back. */
void fb_upgrade_spread_look(struct master *master);
/* We are new and cannot start: tells the old one why. */
void fb_upgrade_report(int link, const struct fb_told *told);

/* Queues that one of the two has alone (upgrade_queues.c) */

/* Whether the other one listens on this unix socket too: then its path stays. */
bool fb_upgrade_shares(const struct master *master, const struct fb_listener *listener);
/* We end: gives them to the other one. */
void fb_upgrade_give_queues(struct master *master);
/* Takes the descriptor. */
void fb_upgrade_take_queue(struct master *master, int fd);
/* As recv(), with a descriptor that came along, or -1. */
ssize_t fb_upgrade_receive(int link, void *bytes, size_t n, int *fd);
/* What a socket is known by in both; 0: it is none. */
uint64_t fb_upgrade_inode(int fd);

/* What comes of it (upgrade.c) */
void fb_upgrade_served(struct master *master);
void fb_upgrade_left_alone(struct master *master);
void fb_upgrade_drop_told(struct master *master);
