/* SPDX-License-Identifier: BSD-2-Clause */
/* libssl, loaded by dlopen(): see libssl.h. */
#include "keeper/libssl.h"

#include "base/compiler.h"

#include <assert.h>
#include <dlfcn.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

/* No file and no variable of the environment is read, and nothing runs at exit(), which would free
 * in a child of fork() what belongs to the parent. The first call of libcrypto decides. */
#define INIT_OPTIONS (OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT)

static const struct libssl_function {
    const char *name;
    size_t offset; /* place of the pointer in struct libssl */
} libssl_functions[] = {
#define LIBSSL(function) { #function, offsetof(struct libssl, function) },
#include "keeper/libssl.def"
#undef LIBSSL
};

int libssl_load(struct libssl *lib, char text[LIBSSL_TEXT])
{
    void *handle = dlopen(LIBSSL_SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (handle == NULL) {
        snprintf(text, LIBSSL_TEXT, "%s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < countof(libssl_functions); i++) {
        void *function = dlsym(handle, libssl_functions[i].name);

        if (function == NULL) {
            snprintf(text, LIBSSL_TEXT, "%s lacks %s()", LIBSSL_SONAME, libssl_functions[i].name);
            dlclose(handle);
            return -1;
        }
        memcpy((char *)lib + libssl_functions[i].offset, &function, sizeof(function));
    }
    dlclose(handle); /* RTLD_NODELETE: the library stays */
    if (OPENSSL_init_crypto(INIT_OPTIONS, NULL) == 1 &&
        lib->OPENSSL_init_ssl(INIT_OPTIONS, NULL) == 1)
        return 0;
    snprintf(text, LIBSSL_TEXT, "%s could not be initialised", LIBSSL_SONAME);
    return -1;
}

libssl_get_ex_data *libssl_ex_data(void)
{
    void *handle = dlopen(LIBSSL_SONAME, RTLD_NOW | RTLD_NOLOAD);
    libssl_get_ex_data *function;
    void *found;

    assert(handle != NULL); /* the caller is called by the library */
    found = dlsym(handle, "SSL_get_ex_data");
    dlclose(handle);
    assert(found != NULL); /* libssl_load() has found the function */
    memcpy(&function, &found, sizeof(function));
    return function;
}
