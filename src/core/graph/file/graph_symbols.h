// graph/file/graph_symbols.h — the names that a graph file has in place of addresses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "base/text.h"
#include "rondo/update.h"
#include "saved/saved_record.h"

// A part of the process's memory that the processor can read.
typedef struct rondo__address_range {
    uintptr_t begin, past;
} rondo__address_range;

typedef struct rondo__graph_symbols {
    rondo_device *device;
    const rondo_graph_symbol *list;  // by the numbers that records have
    size_t count;
    bool *is_used;                 // of each, as far as a record named it
    rondo__address_range *ranges;  // of the process, to tell addresses from numbers
    size_t range_count;
    rondo_graph_symbol *owned;  // the list, where it was made to match a file
} rondo__graph_symbols;

// Checks what the program gave, for a record to be written.
//
// Errors:    INVALID (a symbol without a name, of another kind, twice; memory that overlaps),
//            NO_MEMORY.
// Ownership: end with rondo__graph_symbols_deinit; the list is borrowed.
RONDO_MUST_USE rondo_status rondo__graph_symbols_init(rondo_device *device,
                                                      const rondo_graph_symbol *list, size_t count,
                                                      const char *call,
                                                      rondo__graph_symbols *out_symbols);
void rondo__graph_symbols_deinit(rondo__graph_symbols *symbols);

// The number of the symbol; SIZE_MAX: there is none. Memory: *out_offset is the distance from its
// begin to the address; the address of its end belongs to it, unless other memory begins there.
size_t rondo__graph_symbols_find(rondo__graph_symbols *symbols, rondo_symbol_kind kind,
                                 const void *address, uint64_t *out_offset);
// Reads what the processor can read now, for the call below.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__graph_symbols_list_ranges(rondo__graph_symbols *symbols);
// Whether a number may be an address of this process: of memory that the device knows, or of what
// the processor can read.
bool rondo__graph_symbols_is_address(rondo__graph_symbols *symbols, uint64_t number);

// Checks that the memory which a record uses is the device's own or the host's.
//
// Errors:    INVALID (names the symbol), DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_symbols_check_owners(const rondo__graph_symbols *symbols,
                                                              const char *call);

// The largest power of two, at most 256, that the address is a multiple of.
uint64_t rondo__graph_symbols_get_alignment(uintptr_t address);
// Writes all symbols: name, kind, and for those that the record uses bytes and alignment.
void rondo__graph_symbols_write(const rondo__graph_symbols *symbols, rondo__text *out);
// Gives a file's symbols, of which the first list has names, the addresses of the second one.
//
// Errors:    BAD_DATA, INVALID (a symbol that the file needs is missing, shorter, or less aligned:
//            the message names it), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__graph_symbols_match(rondo__graph_symbols *given,
                                                       rondo__record *record, const char *call,
                                                       rondo__graph_symbols *out_symbols);
