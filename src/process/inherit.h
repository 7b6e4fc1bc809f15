/* SPDX-License-Identifier: BSD-2-Clause */
/* What the environment says about descriptors that were open when this process was started:
 * LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, as sd_listen_fds(3) describes them. */
#pragma once

#include "base/log.h"
#include "net/inherited.h"

/* All sockets that we were given, which may be none; NULL after an emerg line. The variables are
 * removed, so that no child takes them for its own. To be called before any descriptor is opened. */
struct fb_inherited *fb_inherit(struct fb_log *log);
