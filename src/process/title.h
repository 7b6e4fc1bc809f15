/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's title, as ps shows it. */
#pragma once

/* Once, with main's arguments, before anything else uses them. */
void fb_title_init(int argc, char **argv);
/* "forkbeard: ROLE", with the command line behind it for the master. Without the above it does
 * nothing. */
void fb_title_set(const char *role, const char *arguments);
