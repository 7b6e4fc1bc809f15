/* SPDX-License-Identifier: BSD-2-Clause */
/* Setters of directives that TLS to clients and TLS to servers have in common: see ssl.h. Never
 * opens a file. */
#include "features/ssl/ssl.h"
#include "settings/set_value.h"

#include <assert.h>
#include <bsd/string.h>
#include <string.h>

/* An empty path is no file: so a server can do without a file of stream {}. */
int ssl_set_file(struct apply *apply, const struct conf_directive *directive, void *field)
{
    (void)apply;
    *(const struct conf_word **)field = directive->args[0].text[0] != '\0' ? directive->args : NULL;
    return 0;
}

/* ---- Versions and algorithms ---- */

/* The last two are supported. */
static const char *const version_names[] = { "SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2",
    "TLSv1.3", NULL };
static const uint8_t version_bits[] = { 0, 0, 0, 0, TLS_VERSION_1_2, TLS_VERSION_1_3 };

/* Returns the place of the version; -1: no version of nginx's. */
static int find_version(const char *name)
{
    for (int i = 0; version_names[i] != NULL; i++)
        if (strcasecmp(version_names[i], name) == 0)
            return i;
    return -1;
}

/* Warns of the versions of a set of bits, by their places. */
static void warn_of_versions(
    struct apply *apply, const struct conf_directive *directive, unsigned dropped)
{
    char list[64] = "";

    for (int i = 0; version_names[i] != NULL; i++)
        if (dropped >> i & 1) {
            strlcat(list, *list != '\0' ? ", " : "", sizeof(list));
            strlcat(list, version_names[i], sizeof(list));
        }
    report_warn(apply->report, &directive->name,
        "\"%s\" leaves out %s: only TLSv1.2 and TLSv1.3 are supported", apply->setting->name, list);
}

/* Old versions are left out with a warning, where a newer one remains. */
int ssl_set_protocols(struct apply *apply, const struct conf_directive *directive, void *field)
{
    int64_t *versions = field, found = 0;
    unsigned dropped = 0;

    for (unsigned i = 0; i < directive->arg_n; i++) {
        int version = find_version(directive->args[i].text);

        if (version == -1)
            return set_bad_name(
                apply, directive, i, version_names + 4, "\"TLSv1.2\" or \"TLSv1.3\"");
        found |= version_bits[version];
        dropped |= version_bits[version] == 0 ? 1u << version : 0;
    }
    if (found == 0)
        return set_bad_value(apply, directive, 0, "only \"TLSv1.2\" and \"TLSv1.3\" are supported");
    *versions |= found;
    if (dropped != 0)
        warn_of_versions(apply, directive, dropped);
    return 0;
}

int ssl_set_alpn(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct ssl_alpn *alpn = field;
    unsigned n = 0;
    uint8_t *p;

    for (unsigned i = 0; i < directive->arg_n; i++) {
        size_t length = strlen(directive->args[i].text);

        if (length == 0 || length > UINT8_MAX)
            return set_bad_value(
                apply, directive, i, "the name of a protocol has 1 to %d bytes", UINT8_MAX);
        n += 1 + (unsigned)length;
    }
    assert(n <= UINT16_MAX); /* the length of a list of ALPN */
    p = apply_alloc(apply, n);
    if (p == NULL)
        return -1;
    *alpn = (struct ssl_alpn) { p, n };
    for (unsigned i = 0; i < directive->arg_n; i++) {
        const char *name = directive->args[i].text;

        *p++ = (uint8_t)strlen(name);
        memcpy(p, name, p[-1]);
        p += p[-1];
    }
    return 0;
}

int ssl_set_conf_command(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct ssl_commands *commands = field;
    struct tls_command *list =
        apply_grow(apply, commands->list, commands->n, sizeof(*commands->list));

    if (list == NULL)
        return -1;
    commands->list = list;
    commands->list[commands->n++] =
        (struct tls_command) { directive->args[0].text, directive->args[1].text };
    return 0;
}
