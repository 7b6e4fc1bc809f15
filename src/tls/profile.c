/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS in the kernel, as profiles want it: see profile.h. */
#include "tls/profile.h"

#include "os/kernel_tls.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Finds the option in a list; returns '+', '-', or '\0' where it is not. */
static char option_sign(const char *list, const char *option)
{
    size_t length = strlen(option), n;
    char found = '\0';

    for (list += strspn(list, ", "); *list != '\0'; list += n, list += strspn(list, ", ")) {
        char sign = *list == '-' ? '-' : '+';

        list += *list == '+' || *list == '-';
        n = strcspn(list, ", ");
        if (n == length && strncasecmp(list, option, n) == 0)
            found = sign;
    }
    return found;
}

bool tls_option_turns_on(const char *list, const char *option)
{
    return option_sign(list, option) == '+';
}

bool tls_commands_offload(const struct tls_command *commands, unsigned n)
{
    bool offload = false;

    for (unsigned i = 0; i < n; i++) {
        char sign = strcasecmp(commands[i].name, "Options") == 0
                        ? option_sign(commands[i].value, "KTLS")
                        : '\0';

        offload = sign == '\0' ? offload : sign == '+';
    }
    return offload;
}

const struct tls_profile *tls_profiles_offload(const struct tls_profiles *profiles)
{
    for (unsigned i = 0; i < profiles->n; i++)
        if (profiles->list[i].offload)
            return &profiles->list[i];
    return NULL;
}

void tls_profiles_load_kernel(const struct tls_profiles *profiles, struct log *log)
{
    const struct tls_profile *profile = tls_profiles_offload(profiles);

    if (profile == NULL || os_tls_load() == 0)
        return;
    log_write(log, LEVEL_WARN, errno,
        "the option \"KTLS\" has no effect, as the kernel has no TLS, in %s", profile->at);
}
