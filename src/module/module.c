/* SPDX-License-Identifier: BSD-2-Clause */
/* The file is copied into memory of its own, and that is loaded: dlopen() takes a file that it knows
 * by name or inode for the one that is loaded already, however it was changed since. */
#include "module/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux 6.3: before, memory is executable without the first, and there is no second, which is needed
 * where vm.memfd_noexec is 2: it keeps from execve(), not from dlopen(). */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define NAME_MOST 200 /* of the memory, as it shows in /proc/PID/maps */
#define COPY_PATH 1024

/* A load under way. */
struct load {
    char *text;
    int memory;           /* with the file's copy */
    char path[COPY_PATH]; /* of the copy */
};

static void FB_PRINTF(2, 3) say(struct load *load, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(load->text, FB_MODULE_TEXT, format, args);
    va_end(args);
}

static int create_memory(const char *path)
{
    static const unsigned flags[] = { MFD_EXEC, MFD_NOEXEC_SEAL, 0 };
    const char *slash = strrchr(path, '/');
    char name[NAME_MOST + 1];
    int fd = -1;

    snprintf(name, sizeof(name), "%s", slash != NULL ? slash + 1 : path);
    for (size_t i = 0; i < fb_countof(flags) && fd == -1; i++)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags[i]);
    return fd;
}

static int write_all(int fd, const char *bytes, ssize_t n)
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

/* -1 with errno. */
static int copy(int from, int to)
{
    char bytes[16384];
    ssize_t n;

    do {
        n = read(from, bytes, sizeof(bytes));
        if ((n == -1 && errno != EINTR) || write_all(to, bytes, n) == -1)
            return -1;
    } while (n != 0);
    return 0;
}

/* Fixes the copy's bytes before they are loaded: workers inherit the descriptor, and the master runs
 * what stands in pages that it has not touched yet when it unloads the module. */
static int seal(int memory)
{
    return fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static bool is_elf(int fd)
{
    char magic[SELFMAG];

    return pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static bool is_loaded(const struct fb_modules *modules, const struct stat *file)
{
    const struct fb_module *module;

    SLIST_FOREACH (module, modules, link)
        if (module->device == file->st_dev && module->inode == file->st_ino)
            return true;
    return false;
}

/* Copies the open file; -1 when something is wrong with it. */
static int read_file(struct load *load, const struct fb_modules *modules, const char *path, int fd,
    struct stat *file)
{
    if (fstat(fd, file) == -1) {
        say(load, "cannot be read (%d: %s)", errno, strerror(errno));
        return -1;
    }
    if (!S_ISREG(file->st_mode)) {
        say(load, "is no file: name the shared object itself");
        return -1;
    }
    if (is_loaded(modules, file)) {
        say(load, "is loaded already");
        return -1;
    }
    if (!is_elf(fd)) {
        say(load, "is not a shared object: build it with \"cc -shared -fPIC\"");
        return -1;
    }
    load->memory = create_memory(path);
    if (load->memory == -1 || copy(fd, load->memory) == -1 || seal(load->memory) == -1) {
        say(load, "cannot be copied into memory (%d: %s)", errno, strerror(errno));
        return -1;
    }
    return 0;
}

/* Names the copy as no other is: the number of a descriptor comes again, and an object that was
 * loaded by the same path would be taken for it. A debugger opens the path too, and must not find a
 * descriptor of its own there. */
static int name_copy(struct load *load)
{
    size_t n = (size_t)sprintf(load->path, "/proc/%ld/fd/", (long)getpid());
    void *other;

    for (; n + sizeof("./2147483647") < sizeof(load->path); n += 2) {
        snprintf(load->path + n, sizeof(load->path) - n, "%d", load->memory);
        other = dlopen(load->path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
        if (other == NULL)
            return 0;
        dlclose(other);
        memcpy(load->path + n, "./", 2);
    }
    say(load, "cannot be loaded: too many others are");
    return -1;
}

/* What dlerror() says, without the copy's path. */
static const char *dl_text(const struct load *load)
{
    const char *error = dlerror();
    size_t n = strlen(load->path);

    if (error == NULL)
        return "unknown error";
    return strncmp(error, load->path, n) == 0 && strncmp(error + n, ": ", 2) == 0 ? error + n + 2
                                                                                  : error;
}

/* The descriptor, checked; NULL when something is wrong with it. */
static const fb_protocol *find_protocol(struct load *load, void *handle)
{
    const fb_protocol *const *symbol = dlsym(handle, "fb_module");

    if (symbol == NULL || *symbol == NULL) {
        say(load, "is no Forkbeard module: it defines no \"fb_module\" (FB_PROTOCOL() does)");
        return NULL;
    }
    return fb_module_check(*symbol, load->text) == NULL ? *symbol : NULL;
}

/* It could not be bound. A descriptor of another ABI, or none, says more than the symbol. */
static void explain(struct load *load)
{
    static const char undefined[] = "undefined symbol: ";
    const char *error = dl_text(load), *newer = "";
    const fb_protocol *protocol = NULL;
    char reason[FB_MODULE_TEXT / 2];
    void *handle;

    snprintf(reason, sizeof(reason), "%s", error);
    say(load, "cannot be loaded: %s", reason);
    if (strncmp(reason, undefined, sizeof(undefined) - 1) != 0)
        return;
    handle = dlopen(load->path, RTLD_LAZY | RTLD_LOCAL);
    if (handle != NULL) {
        protocol = find_protocol(load, handle);
        if (protocol != NULL && protocol->api > FB_API)
            newer = ": it was built for a newer one";
        dlclose(handle);
        if (protocol == NULL)
            return;
    }
    if (strncmp(reason + sizeof(undefined) - 1, "fb_", 3) == 0)
        say(load, "needs \"%s\", which this forkbeard does not have%s",
            reason + sizeof(undefined) - 1,
            *newer != '\0' ? newer : ": is it built for a newer one?");
    else
        say(load, "needs \"%s\": link it with the library that has it",
            reason + sizeof(undefined) - 1);
}

/* NULL when something is wrong with it. */
static struct fb_module *load_copy(struct load *load, struct fb_arena *arena)
{
    struct fb_module *module = fb_arena_alloc(arena, sizeof(*module));
    const fb_protocol *protocol;

    if (module == NULL) {
        say(load, "cannot be loaded: out of memory");
        return NULL;
    }
    if (name_copy(load) == -1)
        return NULL;
    module->handle = dlopen(load->path, RTLD_NOW | RTLD_LOCAL);
    if (module->handle == NULL) {
        explain(load);
        return NULL;
    }
    protocol = find_protocol(load, module->handle);
    if (protocol != NULL && (module->protocol = fb_module_copy(arena, protocol)) == NULL)
        say(load, "cannot be loaded: out of memory");
    if (module->protocol != NULL)
        return module;
    dlclose(module->handle);
    return NULL;
}

struct fb_module *fb_module_load(
    struct fb_modules *modules, struct fb_arena *arena, const char *path, char text[FB_MODULE_TEXT])
{
    struct load load = { .text = text, .memory = -1 };
    struct fb_module *module = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat file;
    int error = errno;

    if (fd == -1) {
        say(&load, "cannot be opened (%d: %s)", error, strerror(error));
        errno = error;
        return NULL;
    }
    if (read_file(&load, modules, path, fd, &file) == 0)
        module = load_copy(&load, arena);
    close(fd);
    errno = 0;
    if (module == NULL) {
        if (load.memory != -1)
            close(load.memory);
        return NULL;
    }
    module->memory = load.memory;
    module->path = path;
    module->device = file.st_dev;
    module->inode = file.st_ino;
    SLIST_INSERT_HEAD(modules, module, link);
    return module;
}

void fb_module_unload(struct fb_modules *modules)
{
    struct fb_module *module = SLIST_FIRST(modules);

    SLIST_REMOVE_HEAD(modules, link);
    dlclose(module->handle);
    close(module->memory);
}
