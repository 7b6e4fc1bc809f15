/* SPDX-License-Identifier: BSD-2-Clause */
/* `master_process off`: what a worker without a master tells the service manager. */
#pragma once

struct fb_worker;

/* Tells that the worker serves now, and from now on that it is alive. */
void fb_single_serves(struct fb_worker *worker);
/* Tells that the worker has begun to drain or to end. */
void fb_single_ends(struct fb_worker *worker);
