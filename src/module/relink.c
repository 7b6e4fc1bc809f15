/* SPDX-License-Identifier: BSD-2-Clause */
/* Rewrites the addresses of an object's relocations, bound or not, whose symbol has the name of a
 * call, on any processor. Never touches code, and leaves protected pages protected. */
#include "module/relink.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An object, and the calls to redirect. */
struct object {
    const struct relink_call *calls;
    uintptr_t address; /* within it */
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    uintptr_t relro, relro_end; /* pages that may only be read, or 0 */
    bool is_other;              /* found, and without the calls' own code */
};

/* Some systems leave addresses in the dynamic section as they are in the file. */
static uintptr_t absolute(const struct object *object, ElfW(Addr) p)
{
    return p < object->base ? object->base + p : p;
}

static const struct relink_call *find_call(const struct relink_call *calls, const char *name)
{
    if (strncmp(name, "fb_", 3) != 0)
        return NULL;
    while (calls->name != NULL && strcmp(calls->name, name) != 0)
        calls++;
    return calls->name != NULL ? calls : NULL;
}

static void relink_place(struct object *object, uintptr_t offset, uint32_t symbol)
{
    const struct relink_call *call;
    uintptr_t *place = (uintptr_t *)(object->base + offset); // NOLINT

    if (symbol == 0)
        return;
    call = find_call(object->calls, object->names + object->symbols[symbol].st_name);
    if (call != NULL)
        *place = (uintptr_t)call->checked;
}

#if UINTPTR_MAX == UINT64_MAX
#define SYMBOL_OF(info) ((uint32_t)ELF64_R_SYM(info))
#else
#define SYMBOL_OF(info) ((uint32_t)ELF32_R_SYM(info))
#endif

/* Relinks a table of `n` bytes. An entry of either form begins with offset and info. */
static void relink_table(struct object *object, uintptr_t at, size_t n, size_t entry_n)
{
    for (size_t i = 0; at != 0 && i + entry_n <= n; i += entry_n) {
        const ElfW(Rel) *entry = (const void *)(absolute(object, at) + i);

        relink_place(object, entry->r_offset, SYMBOL_OF(entry->r_info));
    }
}

static void relink_tables(struct object *object, const ElfW(Dyn) * dynamic)
{
    uintptr_t values[DT_JMPREL + 1] = { 0 }; /* the greatest tag that is looked at */

    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag > 0 && dynamic->d_tag <= DT_JMPREL)
            values[dynamic->d_tag] = dynamic->d_un.d_val;
    if (values[DT_SYMTAB] == 0 || values[DT_STRTAB] == 0)
        return;
    object->symbols = (const void *)absolute(object, values[DT_SYMTAB]);
    object->names = (const void *)absolute(object, values[DT_STRTAB]);
    relink_table(object, values[DT_RELA], values[DT_RELASZ], sizeof(ElfW(Rela)));
    relink_table(object, values[DT_REL], values[DT_RELSZ], sizeof(ElfW(Rel)));
    relink_table(object, values[DT_JMPREL], values[DT_PLTRELSZ],
        values[DT_PLTREL] == DT_REL ? sizeof(ElfW(Rel)) : sizeof(ElfW(Rela)));
}

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && address - info->dlpi_addr >= part->p_vaddr &&
            address - info->dlpi_addr < part->p_vaddr + part->p_memsz)
            return true;
    }
    return false;
}

/* Makes pages protected after the relocation writable, or read-only again. */
static int protect(const struct object *object, int how)
{
    if (object->relro == object->relro_end)
        return 0;
    return mprotect((void *)object->relro, object->relro_end - object->relro, how); // NOLINT
}

static int relink_info(struct dl_phdr_info *info, size_t size, void *p)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct object *object = p;
    const ElfW(Dyn) *dynamic = NULL;

    (void)size;
    if (!contains(info, object->address))
        return 0;
    if (contains(info, (uintptr_t)object->calls->call)) /* the calls are within the object */
        return 1;
    object->base = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_DYNAMIC)
            dynamic = (const void *)(object->base + part->p_vaddr);
        if (part->p_type == PT_GNU_RELRO) {
            object->relro = (object->base + part->p_vaddr) / page * page;
            object->relro_end = (object->base + part->p_vaddr + part->p_memsz) / page * page;
        }
    }
    if (dynamic == NULL || protect(object, PROT_READ | PROT_WRITE) == -1)
        return 1;
    object->is_other = true;
    relink_tables(object, dynamic);
    protect(object, PROT_READ);
    return 1;
}

bool relink_object(const void *address, const struct relink_call *calls)
{
    struct object object = { .calls = calls, .address = (uintptr_t)address };

    dl_iterate_phdr(relink_info, &object);
    return object.is_other;
}

bool relink_is_built(void)
{
    return true;
}
