/* SPDX-License-Identifier: BSD-2-Clause */
/* A service manager of a play: takes the messages of sd_notify(3), and acts like systemd: listens
 * to the main process alone, stores descriptors, and answers barriers. Reads after every step of a
 * process, and so knows the sender. */
#pragma once

#include "plays/play.h"

#define PLAY_MANAGER_MESSAGES 512
#define PLAY_MANAGER_STORE 64
#define PLAY_MANAGER_VARIABLE 2048

struct play_manager {
    struct play *play;
    int fd;
    char environment[6][PLAY_MANAGER_VARIABLE]; /* variables of processes that it starts */
    pid_t main;                                 /* 0: the next process that is started */
    struct {
        pid_t sender;
        char text[320];
    } messages[PLAY_MANAGER_MESSAGES];
    unsigned message_n, taken;
    struct {
        char name[64];
        int fd;
    } store[PLAY_MANAGER_STORE];
    unsigned stored_n;
    bool stalls;         /* the socket is not read */
    bool keeps_barriers; /* barriers are not answered; the latest stays open */
    int barrier;         /* the latest one that was kept, or -1 */
    unsigned ignored;    /* messages of other processes */
};

/* Makes a manager that starts the play's later processes. `watchdog_us`: the interval of the
 * watchdog, or 0; `other`: the watchdog is another process's. */
struct play_manager *play_manager_create(struct play *play, uint64_t watchdog_us, bool other);
void play_manager_destroy(struct play_manager **manager);
/* Crashes: the socket is read no more. */
void play_manager_go(struct play_manager *manager);
/* Fills the socket, so that sends fail until a read; the fillers are not seen. */
void play_manager_fill(struct play_manager *manager);

/* Receives the messages of the process; false: none. */
bool play_manager_step(struct play_manager *manager, pid_t sender);

/* The next message that is neither a sign of life nor about descriptors; "": there is none. */
const char *play_manager_next(struct play_manager *manager);
/* Skips messages until the first with the beginning; "": none, and all have been skipped. */
const char *play_manager_wait(struct play_manager *manager, const char *beginning);
/* The number of messages with the beginning not taken. */
unsigned play_manager_count(const struct play_manager *manager, const char *beginning);
/* The variables for the environment of a process started now; ends with NULL. */
char **play_manager_environment(struct play_manager *manager, pid_t pid);
/* In the process's thread: passes the stored descriptors, from 3 on. */
void play_manager_pass(const struct play_manager *manager);
