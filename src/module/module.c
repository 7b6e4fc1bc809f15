/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a copy of a shared object (os/memory.h), because dlopen() takes a known name or inode for
 * the loaded object, even after changes. Binds every symbol at once. A failed load leaves nothing
 * open, except code with a running thread. */
#include "module/module.h"

#include "os/memory.h"
#include "os/process.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A load under way. */
struct load {
    char *text; /* error text; MODULE_TEXT bytes of the caller */
    struct os_copy copy;
};

static int write_copy(int fd, const char *bytes, ssize_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, (size_t)n);

        if (written == -1 && errno != EINTR)
            return -1;
        if (written > 0) {
            bytes += written;
            n -= written;
        }
    }
    return 0;
}

/* Copies all of a file; -1 with errno. */
static int copy_file(int from, int to)
{
    char bytes[16384];
    ssize_t n;

    do {
        n = read(from, bytes, sizeof(bytes));
        if ((n == -1 && errno != EINTR) || write_copy(to, bytes, n) == -1)
            return -1;
    } while (n != 0);
    return 0;
}

static bool is_elf(int fd)
{
    char magic[SELFMAG];

    return pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static bool is_loaded(const struct modules *modules, const struct stat *file)
{
    const struct module *module;

    SLIST_FOREACH (module, modules, link)
        if (module->device == file->st_dev && module->inode == file->st_ino)
            return true;
    return false;
}

/* Copies the open file; returns what is wrong with the file, or NULL. */
static const char *copy_module_file(
    struct load *load, const struct modules *modules, const char *path, int fd, struct stat *file)
{
    const char *slash = strrchr(path, '/');

    if (fstat(fd, file) == -1)
        return module_text(load->text, "cannot be read (%d: %s)", errno, strerror(errno));
    if (!S_ISREG(file->st_mode))
        return module_text(load->text, "is not a file: name the shared object itself");
    if (is_loaded(modules, file))
        return module_text(load->text, "is loaded already");
    if (!is_elf(fd))
        return module_text(load->text, "is not a shared object: build with \"cc -shared -fPIC\"");
    if (os_copy_create(&load->copy, slash != NULL ? slash + 1 : path) == -1 ||
        copy_file(fd, load->copy.fd) == -1 || os_copy_finish(&load->copy) == -1) {
        if (errno == EMFILE && load->copy.fd != -1)
            return module_text(load->text, "cannot be loaded: too many modules are loaded");
        return module_text(load->text, "cannot be copied (%d: %s)", errno, strerror(errno));
    }
    return NULL;
}

/* Returns the text of dlerror() without the path of the copy at its beginning. */
static const char *dl_text(const struct load *load)
{
    const char *error = dlerror();
    size_t n = strlen(load->copy.path);

    if (error == NULL)
        return "unknown error";
    return strncmp(error, load->copy.path, n) == 0 && strncmp(error + n, ": ", 2) == 0
               ? error + n + 2
               : error;
}

/* Finds and checks the descriptor; NULL with a text for a wrong descriptor. */
static const fb_protocol *find_descriptor(struct load *load, void *handle)
{
    const fb_protocol *const *symbol = dlsym(handle, "fb_module");

    if (symbol == NULL || *symbol == NULL) {
        module_text(load->text,
            "is not a Forkbeard module: it defines no \"fb_module\" (FB_PROTOCOL() does)");
        return NULL;
    }
    return module_check(*symbol, load->text) == NULL ? *symbol : NULL;
}

/* Formats the reason of a failure; a missing symbol may mean another ABI, or no descriptor. */
static void explain_failure(struct load *load)
{
    static const char undefined[] = "undefined symbol: ";
    const char *error = dl_text(load), *newer = "";
    const fb_protocol *protocol = NULL;
    char reason[MODULE_TEXT / 2];
    void *handle;

    snprintf(reason, sizeof(reason), "%s", error);
    module_text(load->text, "cannot be loaded: %s", reason);
    if (strncmp(reason, undefined, sizeof(undefined) - 1) != 0)
        return;
    handle = dlopen(load->copy.path, RTLD_LAZY | RTLD_LOCAL);
    if (handle != NULL) {
        protocol = find_descriptor(load, handle);
        if (protocol != NULL && protocol->api > FB_API)
            newer = ": the module was built for a newer version";
        dlclose(handle);
        if (protocol == NULL)
            return;
    }
    if (strncmp(reason + sizeof(undefined) - 1, "fb_", 3) == 0)
        module_text(load->text, "needs \"%s\", unknown to this forkbeard%s",
            reason + sizeof(undefined) - 1,
            *newer != '\0' ? newer : ": is the module built for a newer version?");
    else
        module_text(load->text, "needs \"%s\": link the module with the library of the symbol",
            reason + sizeof(undefined) - 1);
}

/* Loads the copy and finds its protocol; NULL with the reason in the text. */
static struct module *load_copy(struct load *load, struct arena *arena)
{
    struct module *module = arena_alloc(arena, sizeof(*module));
    const fb_protocol *protocol;
    unsigned thread_n;

    if (module == NULL) {
        module_text(load->text, "cannot be loaded: out of memory");
        return NULL;
    }
    thread_n = os_thread_count();
    module->handle = dlopen(load->copy.path, RTLD_NOW | RTLD_LOCAL);
    if (module->handle == NULL) {
        explain_failure(load);
        return NULL;
    }
    if (os_thread_count() > thread_n) { /* the code stays, as threads run in it */
        module_text(load->text,
            "has started a thread while it was loaded: workers would not have it; "
            "use fb_run()");
        return NULL;
    }
    protocol = find_descriptor(load, module->handle);
    if (protocol != NULL && (module->protocol = module_copy(arena, protocol)) == NULL)
        module_text(load->text, "cannot be loaded: out of memory");
    module->original = protocol;
    if (module->protocol != NULL)
        return module;
    dlclose(module->handle);
    return NULL;
}

struct module *module_load(
    struct modules *modules, struct arena *arena, const char *path, char text[MODULE_TEXT])
{
    struct load load = { .text = text, .copy = { .fd = -1 } };
    struct module *module = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat file;
    int error = errno;

    if (fd == -1) {
        module_text(text, "cannot be opened (%d: %s)", error, strerror(error));
        errno = error;
        return NULL;
    }
    if (copy_module_file(&load, modules, path, fd, &file) == NULL)
        module = load_copy(&load, arena);
    close(fd);
    errno = 0;
    if (module == NULL) {
        os_copy_drop(&load.copy);
        return NULL;
    }
    assert(module->handle != NULL && module->protocol != NULL);
    module->kind = MODULE_KIND;
    module->memory = os_copy_keep(&load.copy);
    module->path = path;
    module->device = file.st_dev;
    module->inode = file.st_ino;
    SLIST_INSERT_HEAD(modules, module, link);
    return module;
}

const fb_protocol *module_debug(
    struct arena *arena, const fb_protocol *copy, const fb_protocol *original)
{
    assert(copy != NULL && copy != original);
    return relink_object(original, checked_calls) ? checked_protocol_wrapper(arena, copy) : copy;
}

void module_unload(struct modules *modules)
{
    struct module *module = SLIST_FIRST(modules);

    CHECK_KIND(module, MODULE_KIND);
    module->kind = 0;
    SLIST_REMOVE_HEAD(modules, link);
    dlclose(module->handle);
    if (module->memory != -1)
        close(module->memory);
}
