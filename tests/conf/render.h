/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers of the tests of conf/: a parse's owners, and a tree as text. */
#pragma once

#include "conf/conf.h"
#include "conf/report.h"

struct conf {
    struct arena *arena;
    struct conf_report report;
    struct conf_source source;
};

void conf_create(struct conf *conf);
void conf_create_from(struct conf *conf, const struct memory *memory);
void conf_destroy(struct conf *conf);

/* The tree as "name<arg><arg>; name{name;}", to be freed; a NULL block is "(none)". */
char *render_block(const struct conf_block *block);
/* The messages, each ended by "\n", to be freed; warnings are preceded by "warning: ". */
char *render_report(const struct conf_report *report);
