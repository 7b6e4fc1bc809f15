/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket: a client sends a line of JSON, {"command":"reload"}, and is answered with what
 * came of it. It is there while we serve. Private to master/. */
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "process/signals.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FB_REQUEST_MAX 65536 /* bytes of a request */
#define FB_REASON_MAX 3200   /* a line that was told, with its place */

struct master;

/* What a client is kept waiting for. */
enum fb_awaited {
    FB_AWAITS_NOTHING,
    FB_AWAITS_RELOAD, /* that begins one */
    FB_AWAITS_RESULT, /* of the reload that has begun */
    FB_AWAITS_REOPEN,
    FB_AWAITS_UPGRADE, /* that begins */
    FB_AWAITS_NEW,     /* that the new binary serves */
    FB_AWAITS_END,     /* of the master: the kernel closes its connection */
};

struct fb_client {
    TAILQ_ENTRY(fb_client) link;
    int fd;
    pid_t pid;
    enum fb_awaited awaits;
    bool ended;           /* it sends nothing more */
    bool closes;          /* when it has its answer */
    uint64_t deadline_ms; /* to ask, or to take the answer; 0: it is kept waiting */
    char *out;            /* the answer, or NULL */
    size_t out_n, out_sent;
    size_t in_n;
    char in[FB_REQUEST_MAX];
};

struct fb_control {
    char *path; /* NULL: there is no socket */
    int fd;
    dev_t device; /* the socket's file */
    ino_t inode;
    TAILQ_HEAD(, fb_client) clients;
    unsigned client_n;
    bool troubled;     /* a client could not be accepted, which was said */
    uint64_t retry_ms; /* when to try again, as nothing else tells of it; 0: not waiting */
};

/* What the latest reload has come to. */
struct fb_result {
    bool any, ok;
    int64_t at_ms;           /* since the epoch */
    char why[FB_REASON_MAX]; /* it has failed */
};

void fb_control_init(struct fb_control *control);
/* Makes the socket that is to be at this path (NULL: none), unless it is there; -1 after an emerg
 * line. Who connects waits until it is published. */
int fb_control_prepare(struct master *master, const char *path);
/* It takes the place of the one before, as the configuration in force has it. */
void fb_control_publish(struct master *master);
/* Removes what was prepared and not published. */
void fb_control_undo(struct master *master);
/* The way of the old one of two master processes: it answers at PATH.oldbin as well, then there alone,
 * and at last at PATH alone again. */
void fb_control_copy(struct master *master);
void fb_control_move(struct master *master);
void fb_control_return(struct master *master);
/* We end: removes the socket. Clients stay connected until the process is gone. */
void fb_control_end(struct master *master);
/* In a child: lets go of all of it. */
void fb_control_forget(struct fb_control *control);
/* Takes new clients, and goes on with all. */
void fb_control_listen(struct master *master);
/* Cuts off who is slow. */
void fb_control_meet_deadlines(struct master *master, uint64_t *next);

/* Clients (client.c) */

/* Takes the descriptor and goes on; who may not ask is told so and cut off. */
void fb_client_create(struct master *master, int fd);
void fb_client_destroy(struct fb_control *control, struct fb_client *client);
/* Sends, receives and obeys what can be without waiting, and may destroy it. */
void fb_client_go_on(struct master *master, struct fb_client *client);
/* Gives it this line, which is freed; NULL: there was no memory for it, and it is cut off. */
void fb_client_answer(struct fb_client *client, char *line, size_t n);
void fb_client_answer_error(struct fb_client *client, const char *error);

/* What requests do (request.c) */

void fb_client_obey(struct master *master, struct fb_client *client, size_t n);
/* Whether the master was asked for it since the last time. */
bool fb_request_take(struct master *master, enum fb_order order);

/* A reload has begun: what is logged is told, and who has asked waits for its end. */
void fb_result_begin(struct master *master);
/* It has ended, if there was one, and who has asked is answered. */
void fb_result_end(struct master *master, bool ok);
/* Who still waits for a reload learns that there will be none. */
void fb_result_none(struct master *master);
void fb_master_reopen(struct master *master);

/* An upgrade is refused, has begun, and has come to this: `why` is replaced by what was told. */
void fb_upgrade_refused(struct master *master, const char *why);
void fb_upgrade_begun(struct master *master);
void fb_upgrade_answer(
    struct master *master, bool ok, char why[FB_REASON_MAX], const struct fb_told *told);
/* "messages" */
void fb_told_write(struct fb_json *json, const struct fb_told *told);

/* What is shown (status.c) */

void fb_status_write(struct master *master, struct fb_json *json);
/* "2026-11-21T09:30:00Z" */
void fb_status_time(struct fb_json *json, const char *key, int64_t ms);
