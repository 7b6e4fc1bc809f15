/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of profiles, opened by the process that may do so. Never reads one. */
#pragma once

#include "tls/engine.h"

/* Opens file `index` of the profiles for its use; -1 with errno: EINVAL where it is no regular
 * file, so that no process waits for a FIFO or a device. */
int tls_file_open(const struct tls_profiles *profiles, uint32_t index);
/* Files that this process opens itself. */
struct tls_files tls_files_own(const struct tls_profiles *profiles);
