/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of our own servers that protocols pass clients to. */
#pragma once

#include "stream/session_pass.h"

#include <bsd/sys/queue.h>
#include <forkbeard/protocol.h>

struct apply;
struct conf_word;
struct scope;

/* An address that a protocol has asked for. */
struct pass_use {
    STAILQ_ENTRY(pass_use) link;
    struct fb_listener *listener;
    const struct conf_word *word;
    const fb_protocol *protocol;
};

/* Lists all bindings, when they are known; -1 after a report. */
int passes_list_bindings(struct apply *apply, struct binding_list *list);
/* Lists what is listened on, when all is known; has servers whose protocols pass clients look
 * for it; and reports addresses that nobody listens on. */
void passes_finish(struct apply *apply, struct scope *stream);
