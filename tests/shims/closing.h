/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells shims of the descriptors closed by the process, because the imitated kernels forget a
 * closed descriptor, even where another descriptor has the same file. */
#pragma once

/* Registers a function to be called before the descriptors from first to last are closed; a second
 * time has no effect. */
void closing_tell(void (*forget)(unsigned first, unsigned last));
