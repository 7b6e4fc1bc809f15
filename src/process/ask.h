/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's side of the control socket: what `-s` and `status` do. Each returns the exit code, and
 * has said what is wrong. */
#pragma once

#include "process/cmdline.h"

/* -s: asks the daemon and waits for what comes of it; where there is no control socket the signal is
 * sent, and that is said. What is wrong with the configuration keeps nobody from ending the daemon. */
int fb_ask_order(const struct fb_cmdline *cmdline, struct fb_log *log);
int fb_ask_status(const struct fb_cmdline *cmdline, struct fb_log *log);
