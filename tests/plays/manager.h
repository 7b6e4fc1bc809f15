/* SPDX-License-Identifier: BSD-2-Clause */
/* A service manager of a play: it takes what sd_notify(3) sends, and does what systemd does: it
 * listens to the main process alone, stores descriptors, and answers barriers. It reads after each
 * step of a process, so that it knows who has sent. */
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
    bool stalls;         /* its socket is not read */
    bool keeps_barriers; /* barriers are not answered; the latest stays open */
    int barrier;         /* the latest one that was kept, or -1 */
    unsigned ignored;    /* messages of other processes */
};

/* From now on processes of the play are started by it. `watchdog_us`: how often it wants to hear
 * of the daemon, or 0; `other`: of another process. */
struct play_manager *play_manager_create(struct play *play, uint64_t watchdog_us, bool other);
void play_manager_destroy(struct play_manager **manager);
/* Crashes: nobody reads from the socket any more. */
void play_manager_go(struct play_manager *manager);
/* Fills the socket, so that nobody can send until it is read; the fillers are not seen. */
void play_manager_fill(struct play_manager *manager);

/* Receives what has come of this process; false: nothing has. */
bool play_manager_step(struct play_manager *manager, pid_t sender);

/* The next message that is neither a sign of life nor about descriptors; "": there is none. */
const char *play_manager_next(struct play_manager *manager);
/* Passes over messages until one that begins so; "": there is none, and all have been passed. */
const char *play_manager_wait(struct play_manager *manager, const char *beginning);
/* How many messages that begin so were not taken. */
unsigned play_manager_count(const struct play_manager *manager, const char *beginning);
/* The variables for the environment of a process that is started now, which NULL ends. */
char **play_manager_environment(struct play_manager *manager, pid_t pid);
/* In that process's thread: passes the stored descriptors, from 3 on. */
void play_manager_pass(const struct play_manager *manager);
