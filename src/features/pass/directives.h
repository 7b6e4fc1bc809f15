/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of our own servers that protocols pass clients to. */
#pragma once

#include "features/pass/pass.h"

#include <bsd/sys/queue.h>
#include <forkbeard/protocol.h>

struct apply;
struct conf_word;

/* The feature's struct of the configuration. */
struct pass_conf {
    STAILQ_HEAD(, pass_use) uses;
};

/* An address that a protocol has asked for. */
struct pass_use {
    STAILQ_ENTRY(pass_use) link;
    struct fb_listener *listener;
    const struct conf_word *word;
    const fb_protocol *protocol;
};

/* Reads for a protocol an address that servers listen on, as fb_conf_listener(); NULL after a
 * report. */
const fb_listener *pass_listener_of_conf(fb_conf *conf, const char *directive, const char *text);
