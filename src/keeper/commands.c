/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of a profile: see commands.h. */
#include "keeper/commands.h"

#include "base/compiler.h"
#include "keeper/reason.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct refused_command {
    const char *name;
    const char *option; /* a word of the value; NULL: any value */
    const char *why;
} refused_commands[] = {
    { "Options", "ClientRenegotiation", "there is no renegotiation" },
    { "Options", "UnsafeLegacyRenegotiation", "there is no renegotiation" },
    { "Options", "UnsafeLegacyServerConnect", "there is no renegotiation" },
    { "Options", "Compression", "there is no compression" },
    { "VerifyMode", NULL, "verification has a directive of its own" },
    { "RecordPadding", NULL, "records are not the library's" },
};

static const char *why_refused(
    const struct libssl *lib, SSL_CONF_CTX *conf, const struct tls_command *command)
{
    int type = lib->SSL_CONF_cmd_value_type(conf, command->name);

    if (type == SSL_CONF_TYPE_FILE || type == SSL_CONF_TYPE_DIR || type == SSL_CONF_TYPE_STORE)
        return "files have directives of their own";
    for (size_t i = 0; i < countof(refused_commands); i++) {
        const struct refused_command *refused = &refused_commands[i];

        if (strcasecmp(command->name, refused->name) == 0 &&
            (refused->option == NULL || tls_option_turns_on(command->value, refused->option)))
            return refused->why;
    }
    return NULL;
}

const char *commands_directive(const struct tls_profile *profile)
{
    return profile->role == TLS_CLIENT ? "proxy_ssl_conf_command" : "ssl_conf_command";
}

static int run_conf_command(const struct libssl *lib, SSL_CONF_CTX *conf,
    const struct tls_command *command, const struct tls_profile *profile, struct log *log)
{
    const char *why = why_refused(lib, conf, command);
    char reasons[REASON_TEXT];

    if (why != NULL) {
        log_write(log, LEVEL_EMERG, 0, "\"%s %s %s\" is not possible: %s in %s",
            commands_directive(profile), command->name, command->value, why, profile->at);
        return -1;
    }
    ERR_clear_error();
    if (lib->SSL_CONF_cmd(conf, command->name, command->value) > 0)
        return 0;
    log_write(log, LEVEL_EMERG, 0, "SSL_CONF_cmd(\"%s\", \"%s\")%s in %s", command->name,
        command->value, reason_take(reasons, sizeof(reasons), ""), profile->at);
    return -1;
}

int commands_run(
    const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile, struct log *log)
{
    SSL_CONF_CTX *conf;
    int status = 0;

    if (profile->command_n == 0)
        return 0;
    conf = lib->SSL_CONF_CTX_new();
    if (conf == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for \"%s\"", commands_directive(profile));
        return -1;
    }
    lib->SSL_CONF_CTX_set_flags(
        conf, SSL_CONF_FLAG_FILE |
                  (profile->role == TLS_CLIENT ? SSL_CONF_FLAG_CLIENT : SSL_CONF_FLAG_SERVER) |
                  SSL_CONF_FLAG_CERTIFICATE | SSL_CONF_FLAG_SHOW_ERRORS);
    lib->SSL_CONF_CTX_set_ssl_ctx(conf, ctx);
    for (unsigned i = 0; i < profile->command_n; i++)
        if (run_conf_command(lib, conf, &profile->commands[i], profile, log) < 0)
            status = -1;
    if (lib->SSL_CONF_CTX_finish(conf) != 1)
        status = -1;
    lib->SSL_CONF_CTX_free(conf);
    return status;
}
