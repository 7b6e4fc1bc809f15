/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of a listener's options that has to stand before bind(). */
#pragma once

#include "net/listener.h"

/* SO_REUSEADDR, SO_REUSEPORT and IPV6_V6ONLY; what the kernel refuses is an alert. */
void fb_listener_set_bind_options(const struct fb_listener *listener, int fd, struct fb_log *log);
/* All the others. */
void fb_listener_set_options(const struct fb_listener *listener, int fd, struct fb_log *log);
