/* SPDX-License-Identifier: BSD-2-Clause */
/* Files whose names a worker sends, because variables decide them: beneath directories of the
 * configuration, opened by the keeper itself with the rights that it has, not by the master.
 *
 * Responsible for the directory as a limit: a name that leads out is refused before it is opened,
 * in each build; where there is a sandbox, Landlock lets a keeper read beneath the directories of
 * struct tls_profiles alone. Never waits for a FIFO or a device, and never reads. */
#pragma once

/* Room for a path, with its NUL. */
#define NAMED_PATH 4096
/* Room for the reason of a failure. */
#define NAMED_REASON 256

/* Opens a regular file for reading: of a name from the directory on, or of an absolute path beneath
 * the directory. Writes the path for messages, also of a failure, cut where it is too long. -1 with
 * the reason, such as "open() failed (2: No such file or directory)". */
int named_file_open(
    const char *directory, const char *name, char path[NAMED_PATH], char reason[NAMED_REASON]);
