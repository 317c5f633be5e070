// Shared memory is static data of the object, so its symbols tell how much there is:
// _ZZ8bits_fewE4sums is what the kernel bits_few declares, and _ZZ9normaliseRKfE4sums what a
// function does, which has the types of its parameters before the E.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/emulated_limits.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_MAX = 48 << 10, KERNELS_MAX = 64 };

typedef struct kernel_sum {
    const char *name;
    size_t length, bytes;
} kernel_sum;

typedef struct sums {
    kernel_sum kernels[KERNELS_MAX];
    size_t count, of_all;  // bytes that functions declare
} sums;

// The owner's name of a static that a function declares, and whether the owner is a kernel. What
// functions of the prelude declare is none.
static const char *find_owner(const char *symbol, size_t *out_length, bool *out_is_kernel) {
    static const char own[] = "emulated_";
    if (strncmp(symbol, "_ZZ", 3) != 0) {
        return NULL;
    }
    char *name = NULL;
    const char *number = symbol + 3 + (symbol[3] == 'L');  // of a static function
    *out_length = strtoul(number, &name, 10);
    *out_is_kernel = *out_length > 0 && strlen(name) > *out_length && name[*out_length] == 'E';
    return strncmp(name, own, sizeof own - 1) != 0 ? name : NULL;
}

static void add(sums *s, const char *name, size_t length, size_t bytes) {
    size_t i = 0;
    while (i < s->count &&
           (s->kernels[i].length != length || memcmp(s->kernels[i].name, name, length) != 0)) {
        i++;
    }
    if (i == s->count && i < KERNELS_MAX) {
        s->kernels[s->count++] = (kernel_sum){name, length, 0};
    }
    s->kernels[i < KERNELS_MAX ? i : KERNELS_MAX - 1].bytes += bytes;
}

static void add_symbols(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *table,
                        sums *s) {
    const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(file + table->sh_offset);
    const char *names = file + sections[table->sh_link].sh_offset;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        size_t length = 0;
        bool is_kernel = false;
        const char *owner = find_owner(names + symbol->st_name, &length, &is_kernel);
        const bool is_data = ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT &&
                             symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE &&
                             (sections[symbol->st_shndx].sh_flags & SHF_WRITE) != 0;
        if (owner != NULL && is_data && is_kernel) {
            add(s, owner, length, symbol->st_size);
        } else if (owner != NULL && is_data) {
            s->of_all += symbol->st_size;
        }
    }
}

bool emulated_fits_shared(const emulated_buffer *object, emulated_buffer *log) {
    sums s = {.count = 0};
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)object->bytes;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(object->bytes + head->e_shoff);
    for (size_t i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type == SHT_SYMTAB) {
            add_symbols(object->bytes, sections, &sections[i], &s);
        }
    }
    for (size_t i = 0; i < s.count; i++) {
        const size_t bytes = s.kernels[i].bytes + s.of_all;
        if (bytes > SHARED_MAX) {
            char line[256];
            (void)snprintf(line, sizeof line,
                           "ptxas error   : Entry function '%.*s' uses too much shared data "
                           "(0x%zx bytes, 0x%x max)\n",
                           (int)(s.kernels[i].length < 100 ? s.kernels[i].length : 100),
                           s.kernels[i].name, bytes, (unsigned)SHARED_MAX);
            emulated_append_text(log, line);
            return false;
        }
    }
    return true;
}
