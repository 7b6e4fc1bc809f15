/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks and directives that take more than a value, and what each context leaves to be worked out
 * at the end. The files are named after the contexts and directives. */
#pragma once

#include "settings/setting.h"

struct fb_frame;

/* core.c: the rest of the main context; only for a configuration without mistakes. */
void fb_core_finish(struct fb_apply *apply);
/* core.c: the default paths of the pid file and the control socket. */
void fb_core_finish_pid(struct fb_apply *apply);
void fb_core_finish_control(struct fb_apply *apply);

/* error_log.c; the log of a configuration that names none. */
FB_SETTER(fb_set_error_log);
FB_SETTER(fb_set_error_log_rate_limit);
void fb_error_log_finish(struct fb_apply *apply);

/* events.c; the mechanisms' directives as rows (NULL after a report), and the choice of one. */
FB_SETTER(fb_set_events);
const struct fb_setting *fb_mechanism_table(struct fb_apply *apply);
void fb_events_finish(struct fb_apply *apply);

/* modules.c */
FB_SETTER(fb_set_load_module);

/* stream.c; the stream block is applied after everything else. */
FB_SETTER(fb_set_stream);
FB_SETTER(fb_set_server);
void fb_stream_apply(struct fb_apply *apply);

/* substitution.c: replaces environment variables in the arguments, if the configuration asks for
 * it; NULL after a report. */
FB_SETTER(fb_set_env_substitution);
const struct fb_conf_directive *fb_apply_substitute(
    struct fb_apply *apply, const struct fb_conf_directive *directive);

/* sizing.c: `worker_connections auto`, and the check against the memory that there is. */
void fb_sizing_finish(struct fb_apply *apply);

/* needs.c: collects what the protocols of all servers need (needs.h). */
void fb_needs_collect(struct fb_apply *apply);
