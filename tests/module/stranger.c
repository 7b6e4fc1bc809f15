/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared object that is no module. */
int stranger(void);

__attribute__((visibility("default"))) int stranger(void)
{
    return 1;
}
