/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses a text with a report and an arena, and renders a tree as text. */
#pragma once

#include "conf/conf.h"
#include "conf/report.h"

struct conf {
    struct fb_arena *arena;
    struct fb_conf_report report;
    struct fb_conf_source source;
};

void conf_create(struct conf *conf);
void conf_destroy(struct conf *conf);

/* The tree as "name<arg><arg>; name{name;}", to be freed; a NULL block is "(none)". */
char *render_block(const struct fb_conf_block *block);
/* The messages, each ended by "\n", to be freed; warnings are preceded by "warning: ". */
char *render_report(const struct fb_conf_report *report);
