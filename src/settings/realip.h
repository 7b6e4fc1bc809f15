/* SPDX-License-Identifier: BSD-2-Clause */
/* `set_real_ip_from`: the proxies whose PROXY headers are believed. Those of a server stand in the
 * place of those of `stream {}`. */
#pragma once

#include "settings/setting.h"

struct apply;

/* Adds an address, a block, the addresses of a name, or all unix sockets to a struct
 * trusted_setting. */
int realip_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);

/* Reports variables of the PROXY header that cannot be, and notes whether any is used, when all of
 * the configuration's variables are known. */
void realip_finish(struct apply *apply);
