/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells shims which descriptors this process closes, because the kernels that they stand for forget
 * a closed descriptor, even where another one has the same file. */
#pragma once

/* Registers a function to be called before the descriptors from first to last are closed; a second
 * time has no effect. */
void closing_tell(void (*forget)(unsigned first, unsigned last));
