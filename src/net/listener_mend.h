/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets that do not listen any more, and are made to. */
#pragma once

#include "net/listener.h"

/* Makes a broken socket listen again beside those of `others`. The same does where that is
 * possible, else, if one `may_replace` it, a new one under its descriptor, which the other holders
 * of the old one have to be given. Of many times few are logged, with their number. Returns -1
 * where it fails, with an emerg line at times. */
enum { LISTENER_MENDED, LISTENER_REPLACED };
int listener_mend(struct listener *listener, int fd, const struct listeners *others,
    bool may_replace, struct log *log);
