/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a certificate's validity: see expiry.h. */
#include "keeper/expiry.h"

#include "tls/engine.h"

#include <time.h>

#define DAY 86400

int64_t expiry_of(const X509 *certificate)
{
    struct tm tm = { .tm_year = 0 };

    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) != 1)
        return 1;
    return (int64_t)timegm(&tm);
}

const char *expiry_text(int64_t end, char out[EXPIRY_TEXT])
{
    time_t seconds = (time_t)end;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(out, EXPIRY_TEXT, "%Y-%m-%d %H:%M:%S UTC", &tm);
    return out;
}

void expiry_remind(const char *path, int64_t end, struct log *log)
{
    int64_t left = end - (int64_t)time(NULL);
    char date[EXPIRY_TEXT];

    expiry_text(end, date);
    if (left <= 0)
        log_write(log, LEVEL_ERROR, 0, "certificate \"%s\" has expired on %s", path, date);
    else if (left <= TLS_EXPIRY_DAYS * DAY)
        log_write(log, LEVEL_WARN, 0, "certificate \"%s\" expires on %s, in %d days", path, date,
            (int)(left / DAY));
}
