/* SPDX-License-Identifier: BSD-2-Clause */
/* The process title that ps shows: the role of the process and, for the master, the command line.
 * After title_init() the strings of argv are no longer valid. */
#pragma once

/* Called once, with main's arguments, before anything else uses them. */
void title_init(int argc, char **argv);
/* Sets the title to "forkbeard: ROLE ARGUMENTS"; NULL: with the arguments that it has, which the
 * caller must have kept. Does nothing before title_init(). */
void title_set(const char *role, const char *arguments);
