/* SPDX-License-Identifier: BSD-2-Clause */
/* The certificates of a build without OpenSSL: none. */
#include "cli/certificate.h"

int certificate_make(
    const struct certificate_order *order, struct certificate *made, struct log *log)
{
    (void)order;
    *made = (struct certificate) { .key = NULL };
    log_write(log, LEVEL_EMERG, 0,
        "\"certificate\" needs OpenSSL, which this build lacks: see forkbeard -V");
    return -1;
}
