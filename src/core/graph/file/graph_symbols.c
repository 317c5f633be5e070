// graph/file/graph_symbols.c — see graph_symbols.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph/file/graph_symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { ALIGNMENT_MAX = 256, LINE_BYTES = 512 };

// ---- what the program gave --------------------------------------------------------------------

static uintptr_t begin_of(const rondo_graph_symbol *symbol) {
    return (uintptr_t)symbol->address;
}

static rondo_status check_symbol(const rondo_graph_symbol *list, size_t i, const char *call) {
    const rondo_graph_symbol *symbol = &list[i];
    if (symbol->name == NULL || symbol->name[0] == '\0' || symbol->address == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "symbols[%zu] has no %s", i,
                             symbol->address == NULL ? "address" : "name");
    }
    if (symbol->kind < RONDO_SYMBOL_FUNCTION || symbol->kind > RONDO_SYMBOL_HOST_FUNCTION) {
        return RONDO_FAIL_AS(call, INVALID, "symbols[%zu] (%.60s) is of kind %d", i, symbol->name,
                             (int)symbol->kind);
    }
    const bool is_memory = symbol->kind == RONDO_SYMBOL_MEMORY;
    if (is_memory != (symbol->byte_count > 0) ||
        symbol->byte_count > UINTPTR_MAX - begin_of(symbol)) {
        return RONDO_FAIL_AS(call, INVALID, "symbols[%zu] (%.60s) has %zu bytes; %s", i,
                             symbol->name, symbol->byte_count,
                             is_memory ? "memory has some" : "only memory has some");
    }
    for (size_t k = 0; k < i; ++k) {
        const rondo_graph_symbol *other = &list[k];
        if (strcmp(other->name, symbol->name) == 0) {
            return RONDO_FAIL_AS(call, INVALID, "there are two symbols %.60s", symbol->name);
        }
        if (is_memory && other->kind == RONDO_SYMBOL_MEMORY &&
            begin_of(symbol) < begin_of(other) + other->byte_count &&
            begin_of(other) < begin_of(symbol) + symbol->byte_count) {
            return RONDO_FAIL_AS(call, INVALID, "the memory of symbols %.60s and %.60s overlaps",
                                 other->name, symbol->name);
        }
    }
    return RONDO_STATUS_OK;
}

// What the processor can read. Devices are left out: a driver maps low addresses, as small as
// numbers.
rondo_status rondo__graph_symbols_list_ranges(rondo__graph_symbols *symbols) {
    size_t capacity = 0;
    rondo_status status = RONDO_STATUS_OK;
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[LINE_BYTES];
    while (maps != NULL && status == RONDO_STATUS_OK && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t begin = 0;
        uintptr_t past = 0;
        char rights[5] = "";
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &past, rights) != 3 ||
            rights[0] != 'r' || strstr(line, " /dev/") != NULL) {
            continue;
        }
        status = RONDO__ARRAY_RESERVE(symbols->ranges, capacity, symbols->range_count + 1);
        if (status == RONDO_STATUS_OK) {
            symbols->ranges[symbols->range_count++] = (rondo__address_range){begin, past};
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return status;
}

rondo_status rondo__graph_symbols_init(rondo_device *device, const rondo_graph_symbol *list,
                                       size_t count, const char *call,
                                       rondo__graph_symbols *out_symbols) {
    *out_symbols = (rondo__graph_symbols){.device = device, .list = list, .count = count};
    if (count > 0 && list == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "symbols is NULL, and their number %zu", count);
    }
    for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(check_symbol(list, i, call));
    }
    out_symbols->is_used = rondo__calloc(count + 1, sizeof *out_symbols->is_used);
    return out_symbols->is_used != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

void rondo__graph_symbols_deinit(rondo__graph_symbols *symbols) {
    rondo__free(symbols->is_used);
    rondo__free(symbols->ranges);
    rondo__free(symbols->owned);
    *symbols = (rondo__graph_symbols){0};
}

// ---- look-ups ---------------------------------------------------------------------------------

static bool holds(const rondo_graph_symbol *symbol, uintptr_t address, bool takes_end) {
    const uintptr_t begin = begin_of(symbol);
    if (symbol->kind != RONDO_SYMBOL_MEMORY) {
        const void *named = symbol->kind == RONDO_SYMBOL_EVENT
                                ? ((const rondo_event *)symbol->address)->native
                                : symbol->address;
        return (uintptr_t)named == address;
    }
    return address >= begin && (takes_end ? address <= begin + symbol->byte_count
                                          : address < begin + symbol->byte_count);
}

size_t rondo__graph_symbols_find(rondo__graph_symbols *symbols, rondo_symbol_kind kind,
                                 const void *address, uint64_t *out_offset) {
    for (int takes_end = 0; takes_end < 2; ++takes_end) {
        for (size_t i = 0; i < symbols->count && address != NULL; ++i) {
            const rondo_graph_symbol *symbol = &symbols->list[i];
            if (symbol->kind == kind && holds(symbol, (uintptr_t)address, takes_end != 0)) {
                symbols->is_used[i] = true;
                *out_offset = (uintptr_t)address - begin_of(symbol);
                return i;
            }
        }
    }
    return SIZE_MAX;
}

bool rondo__graph_symbols_is_address(rondo__graph_symbols *symbols, uint64_t number) {
    const rondo__backend *backend = symbols->device->backend;
    rondo__allocation allocation = {.id = 0};
    for (size_t i = 0; i < symbols->range_count; ++i) {
        if (number >= symbols->ranges[i].begin && number < symbols->ranges[i].past) {
            return true;
        }
    }
    rondo_error saved;
    rondo__error_save(&saved);
    const bool is_known = number >= 4096 && backend->find_allocation != NULL &&
                          backend->find_allocation(symbols->device, (const void *)(uintptr_t)number,
                                                   &allocation) == RONDO_STATUS_OK &&
                          allocation.id != 0;
    rondo__error_restore(&saved);
    return is_known;
}

rondo_status rondo__graph_symbols_check_owners(const rondo__graph_symbols *symbols,
                                               const char *call) {
    rondo_device *device = symbols->device;
    for (size_t i = 0; i < symbols->count && device->backend->find_owner != NULL; ++i) {
        const rondo_graph_symbol *symbol = &symbols->list[i];
        int32_t owner = -1;
        if (symbol->kind != RONDO_SYMBOL_MEMORY || !symbols->is_used[i]) {
            continue;
        }
        RETURN_IF_ERROR(device->backend->find_owner(device, symbol->address, &owner));
        if (owner >= 0 && owner != device->ordinal) {
            return RONDO_FAIL_AS(
                call, INVALID,
                "memory %.100s is of %s:%d; a graph file has memory of the graph's "
                "own device, %s, and pinned memory",
                symbol->name, device->backend->name, (int)owner, device->name);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- in a file --------------------------------------------------------------------------------

uint64_t rondo__graph_symbols_get_alignment(uintptr_t address) {
    uint64_t alignment = 1;
    while (alignment < ALIGNMENT_MAX && address % (2 * alignment) == 0) {
        alignment *= 2;
    }
    return alignment;
}

void rondo__graph_symbols_write(const rondo__graph_symbols *symbols, rondo__text *out) {
    rondo__record_put(out, symbols->count);
    for (size_t i = 0; i < symbols->count; ++i) {
        const rondo_graph_symbol *symbol = &symbols->list[i];
        rondo__record_put(out, (uint64_t)symbol->kind);
        rondo__record_put_text(out, symbol->name);
        rondo__record_put(out, symbols->is_used[i]);
        rondo__record_put(out, symbol->byte_count);
        rondo__record_put(out, rondo__graph_symbols_get_alignment(begin_of(symbol)));
    }
}

static const rondo_graph_symbol *find_name(const rondo__graph_symbols *symbols, const char *name,
                                           rondo_symbol_kind kind) {
    for (size_t i = 0; i < symbols->count; ++i) {
        if (symbols->list[i].kind == kind && strcmp(symbols->list[i].name, name) == 0) {
            return &symbols->list[i];
        }
    }
    return NULL;
}

// One of the file's. What no node names needs no address.
static rondo_status match_symbol(const rondo__graph_symbols *given, rondo__record *record,
                                 const char *call, rondo_graph_symbol *out_symbol) {
    static const char *const kinds[] = {"function", "memory", "event", "host function"};
    const rondo_symbol_kind kind =
        (rondo_symbol_kind)rondo__record_get_most(record, RONDO_SYMBOL_HOST_FUNCTION);
    const char *name = rondo__record_get_text(record);
    const bool is_used = rondo__record_get_most(record, 1) != 0;
    const uint64_t byte_count = rondo__record_get_most(record, SIZE_MAX);
    const uint64_t alignment = rondo__record_get_most(record, ALIGNMENT_MAX);
    *out_symbol = (rondo_graph_symbol){.name = name, .kind = kind};
    if (record->is_bad || alignment == 0 || !is_used) {
        return RONDO_STATUS_OK;
    }
    const rondo_graph_symbol *found = find_name(given, name, kind);
    if (found == NULL) {
        return RONDO_FAIL_AS(call, INVALID,
                             "the graph file needs the %s %.100s, which is not among "
                             "the symbols",
                             kinds[kind], name);
    }
    if (found->byte_count < byte_count) {
        return RONDO_FAIL_AS(call, INVALID,
                             "memory %.100s has %zu bytes; it had %" PRIu64
                             " when the graph was recorded, and needs as many",
                             name, found->byte_count, byte_count);
    }
    if (kind == RONDO_SYMBOL_MEMORY && begin_of(found) % alignment != 0) {
        return RONDO_FAIL_AS(call, INVALID,
                             "memory %.100s is at %p, no multiple of %" PRIu64
                             " bytes as it was when the graph was recorded",
                             name, found->address, alignment);
    }
    *out_symbol = *found;
    return RONDO_STATUS_OK;
}

rondo_status rondo__graph_symbols_match(rondo__graph_symbols *given, rondo__record *record,
                                        const char *call, rondo__graph_symbols *out_symbols) {
    const size_t count = rondo__record_get_count(record);
    *out_symbols = (rondo__graph_symbols){.device = given->device, .count = count};
    out_symbols->owned = rondo__calloc(count + 1, sizeof *out_symbols->owned);
    out_symbols->is_used = rondo__calloc(count + 1, sizeof *out_symbols->is_used);
    if (out_symbols->owned == NULL || out_symbols->is_used == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    out_symbols->list = out_symbols->owned;
    for (size_t i = 0; i < count && !record->is_bad; ++i) {
        RETURN_IF_ERROR(match_symbol(given, record, call, &out_symbols->owned[i]));
        out_symbols->is_used[i] = out_symbols->owned[i].address != NULL;
    }
    return record->is_bad || record->at != record->past
               ? RONDO_FAIL_AS(call, BAD_DATA, "the graph file's symbols are damaged")
               : rondo__graph_symbols_check_owners(out_symbols, call);
}
