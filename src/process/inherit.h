/* SPDX-License-Identifier: BSD-2-Clause */
/* What the environment says about descriptors that were open when this process was started:
 * LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES of a service manager, as sd_listen_fds(3) describes them,
 * or FORKBEARD of the master process that starts this one from a newer binary. */
#pragma once

#include "process/handover.h"

/* All that we were given, which may be nothing; -1 after an emerg line. The variables are removed, so
 * that no child takes them for its own. To be called before any descriptor is opened. */
int fb_inherit(struct fb_inheritance *inheritance, struct fb_log *log);
/* Lets go of the memory and of what nobody has taken over. */
void fb_inheritance_done(struct fb_inheritance *inheritance);
