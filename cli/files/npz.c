// A zip file is read from its end: the record there says where the list of entries is, and each
// entry of the list where its bytes are. Every number comes from outside and is checked against
// the file.
//
// Source: PKWARE, .ZIP File Format Specification (APPNOTE.TXT), sections 4.3 and 4.5.
// SPDX-License-Identifier: Apache-2.0
#include "npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef RONDO_HAS_ZLIB
#define ZLIB_CONST  // so that input bytes are const
#include <zlib.h>
#endif

#include "console.h"
#include "npy.h"

enum {
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    LISTED_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535,
    ENTRY_COUNT_MAX = 65536,
    EXPANSION_MAX = 1100,  // deflate makes at most 1032 bytes of one
};

static uint64_t get_number(const uint8_t *at, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

static bool has_signature(const uint8_t *at, const char *signature) {
    return memcmp(at, signature, 4) == 0;
}

static bool fail(const cli_npz *npz, const char *what) {
    cli_print_error("%s: %s", npz->label, what);
    return false;
}

bool cli_npz_is(const uint8_t *bytes, size_t byte_count) {
    return byte_count >= 4 && (has_signature(bytes, "PK\3\4") || has_signature(bytes, "PK\5\6"));
}

// ---- the list ---------------------------------------------------------------------------------

// Finds the list of entries: *out_offset, *out_count.
static bool find_list(const cli_npz *npz, uint64_t *out_offset, uint64_t *out_count) {
    const uint8_t *data = npz->data;
    size_t end = npz->byte_count;
    if (end < END_BYTES) {
        return false;
    }
    size_t at = end - END_BYTES;
    const size_t first = at > COMMENT_MAX ? at - COMMENT_MAX : 0;
    while (!has_signature(data + at, "PK\5\6")) {
        if (at-- == first) {
            return false;
        }
    }
    *out_count = get_number(data + at + 10, 2);
    *out_offset = get_number(data + at + 16, 4);
    // Large archives say 2^32 - 1 here, and have a second record in front of this one.
    if ((*out_offset == UINT32_MAX || *out_count == UINT16_MAX) && at >= LOCATOR_BYTES &&
        has_signature(data + at - LOCATOR_BYTES, "PK\6\7")) {
        const uint64_t record = get_number(data + at - LOCATOR_BYTES + 8, 8);
        if (npz->byte_count < END64_BYTES || record > npz->byte_count - END64_BYTES ||
            !has_signature(data + record, "PK\6\6")) {
            return false;
        }
        *out_count = get_number(data + record + 32, 8);
        *out_offset = get_number(data + record + 48, 8);
    }
    return *out_offset <= npz->byte_count && *out_count <= ENTRY_COUNT_MAX;
}

// Numbers of 2^32 - 1 stand, in this order, in the extra field of large entries.
static void read_large_numbers(const uint8_t *extra, size_t extra_bytes, cli_npz_entry *entry) {
    uint64_t *const fields[] = {&entry->bytes, &entry->packed_bytes, &entry->offset};
    for (size_t at = 0; at + 4 <= extra_bytes;) {
        const size_t length = (size_t)get_number(extra + at + 2, 2);
        if (length > extra_bytes - at - 4) {
            return;
        }
        size_t used = 0;
        for (size_t i = 0; get_number(extra + at, 2) == 1 && i < 3; i++) {
            if (*fields[i] == UINT32_MAX && used + 8 <= length) {
                *fields[i] = get_number(extra + at + 4 + used, 8);
                used += 8;
            }
        }
        at += 4 + length;
    }
}

static char *copy_name(const uint8_t *name, size_t length) {
    if (length > 4 && memcmp(name + length - 4, ".npy", 4) == 0) {
        length -= 4;
    }
    return strndup((const char *)name, length);
}

// Reads the entry at *at and moves on.
static bool read_listed(cli_npz *npz, size_t *at) {
    const uint8_t *data = npz->data + *at;
    const size_t left = npz->byte_count - *at;
    if (left < LISTED_BYTES || !has_signature(data, "PK\1\2")) {
        return false;
    }
    const size_t name_bytes = (size_t)get_number(data + 28, 2);
    const size_t extra_bytes = (size_t)get_number(data + 30, 2);
    const size_t comment_bytes = (size_t)get_number(data + 32, 2);
    if (name_bytes + extra_bytes + comment_bytes > left - LISTED_BYTES) {
        return false;
    }
    cli_npz_entry *entry = &npz->entries[npz->count];
    *entry = (cli_npz_entry){
        .method = (uint16_t)get_number(data + 10, 2),
        .checksum = (uint32_t)get_number(data + 16, 4),
        .packed_bytes = get_number(data + 20, 4),
        .bytes = get_number(data + 24, 4),
        .offset = get_number(data + 42, 4),
        .name = copy_name(data + LISTED_BYTES, name_bytes),
    };
    if (entry->name == NULL) {
        return false;
    }
    read_large_numbers(data + LISTED_BYTES + name_bytes, extra_bytes, entry);
    npz->count++;
    *at += LISTED_BYTES + name_bytes + extra_bytes + comment_bytes;
    return true;
}

// Each entry has bytes of its own in the file, behind a head, and stands in the list. Entries that
// share them would unpack, one after the other, into far more than the file can hold.
static bool has_room_for_entries(const cli_npz *npz) {
    uint64_t left = npz->byte_count;
    for (size_t i = 0; i < npz->count; i++) {
        const uint64_t heads = LOCAL_BYTES + LISTED_BYTES;
        if (left < heads || npz->entries[i].packed_bytes > left - heads) {
            return false;
        }
        left -= heads + npz->entries[i].packed_bytes;
    }
    return true;
}

bool cli_npz_open(const uint8_t *data, size_t byte_count, const char *label, cli_npz *out_npz) {
    cli_npz npz = {.label = label, .data = data, .byte_count = byte_count};
    uint64_t offset = 0;
    uint64_t count = 0;
    memset(out_npz, 0, sizeof *out_npz);
    if (!find_list(&npz, &offset, &count)) {
        return fail(&npz, "not a whole .npz file: the list of its entries is missing");
    }
    npz.entries = calloc((size_t)count + 1, sizeof *npz.entries);
    if (npz.entries == NULL) {
        return fail(&npz, "out of memory");
    }
    size_t at = (size_t)offset;
    while (npz.count < count) {
        if (!read_listed(&npz, &at)) {
            cli_npz_close(&npz);
            npz.label = label;
            return fail(&npz, "the list of the .npz file's entries is malformed");
        }
    }
    if (!has_room_for_entries(&npz)) {
        cli_npz_close(&npz);
        npz.label = label;
        return fail(&npz, "the entries of the .npz file overlap: together they are larger than it");
    }
    *out_npz = npz;
    return true;
}

void cli_npz_close(cli_npz *npz) {
    for (size_t i = 0; i < npz->count; i++) {
        free(npz->entries[i].name);
    }
    free(npz->entries);
    memset(npz, 0, sizeof *npz);
}

const cli_npz_entry *cli_npz_find(const cli_npz *npz, const char *name) {
    for (size_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->entries[i].name, name) == 0) {
            return &npz->entries[i];
        }
    }
    return NULL;
}

// ---- one entry --------------------------------------------------------------------------------

#ifdef RONDO_HAS_ZLIB
// Returns the unpacked bytes, which the caller frees; NULL when they are not what was promised.
static uint8_t *inflate_entry(const uint8_t *packed, const cli_npz_entry *entry) {
    enum { RAW_WINDOW = -15, STEP_BYTES = 1 << 30 };
    uint8_t *bytes = malloc((size_t)entry->bytes + 1);
    z_stream stream = {0};
    if (bytes == NULL || inflateInit2(&stream, RAW_WINDOW) != Z_OK) {
        free(bytes);
        return NULL;
    }
    int result = Z_OK;
    uint64_t taken = 0;
    uint64_t made = 0;
    while (result == Z_OK) {  // zlib counts in 32 bits, so in steps
        const uint64_t in_step =
            entry->packed_bytes - taken < STEP_BYTES ? entry->packed_bytes - taken : STEP_BYTES;
        const uint64_t out_step =
            entry->bytes - made < STEP_BYTES ? entry->bytes - made : STEP_BYTES;
        uint8_t none[1];
        stream.next_in = packed + taken;
        stream.avail_in = (uInt)in_step;
        stream.next_out = out_step > 0 ? bytes + made : none;
        stream.avail_out = out_step > 0 ? (uInt)out_step : 1;
        const uInt out_before = stream.avail_out;
        result = inflate(&stream, Z_NO_FLUSH);
        const uint64_t step_made = out_before - stream.avail_out;
        const uint64_t step_taken = in_step - stream.avail_in;
        if (out_step == 0 && step_made > 0) {
            result = Z_DATA_ERROR;  // longer than promised
        }
        made += out_step > 0 ? step_made : 0;
        taken += step_taken;
        if (result == Z_OK && step_made == 0 && step_taken == 0) {
            result = Z_BUF_ERROR;
        }
    }
    (void)inflateEnd(&stream);
    if (result != Z_STREAM_END || made != entry->bytes) {
        free(bytes);
        return NULL;
    }
    return bytes;
}
#endif

// The checksum of zip files: CRC-32, reflected, polynomial EDB88320.
static uint32_t get_checksum(const uint8_t *bytes, size_t count) {
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = (value & 1u) != 0 ? (value >> 1) ^ UINT32_C(0xEDB88320) : value >> 1;
        }
        table[i] = value;
    }
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum = table[(sum ^ bytes[i]) & 0xffu] ^ (sum >> 8);
    }
    return ~sum;
}

bool cli_npz_read(const cli_npz *npz, const cli_npz_entry *entry, rondo_dtype wanted,
                  rondo_tensor *out_tensor) {
    enum { STORED = 0, DEFLATED = 8 };
    char label[512];
    memset(out_tensor, 0, sizeof *out_tensor);
    snprintf(label, sizeof label, "%.300s:%.200s", npz->label, entry->name);
    const cli_npz named = {.label = label};
    if (npz->byte_count < LOCAL_BYTES || entry->offset > npz->byte_count - LOCAL_BYTES ||
        !has_signature(npz->data + entry->offset, "PK\3\4")) {
        return fail(&named, "the entry lies outside of the file");
    }
    const uint8_t *local = npz->data + entry->offset;
    const uint64_t skipped = LOCAL_BYTES + get_number(local + 26, 2) + get_number(local + 28, 2);
    const uint64_t left = npz->byte_count - entry->offset;
    if (skipped > left || entry->packed_bytes > left - skipped) {
        return fail(&named, "the entry reaches beyond the end of the file");
    }
    const uint8_t *bytes = local + skipped;
    uint8_t *unpacked = NULL;
    if (entry->method == DEFLATED) {
#ifdef RONDO_HAS_ZLIB
        if (entry->bytes / EXPANSION_MAX > entry->packed_bytes) {
            return fail(&named, "the entry claims more bytes than it can hold");
        }
        unpacked = inflate_entry(bytes, entry);
        if (unpacked == NULL) {
            return fail(&named, "the entry cannot be unpacked: its bytes are damaged");
        }
        bytes = unpacked;
#else
        return fail(&named,
                    "the entry is compressed, and this build has no zlib; save it with "
                    "numpy.savez instead of savez_compressed");
#endif
    } else if (entry->method != STORED || entry->bytes != entry->packed_bytes) {
        return fail(&named, "the entry is packed in a way that is not known (deflate is)");
    }
    const bool is_done =
        get_checksum(bytes, (size_t)entry->bytes) == entry->checksum
            ? cli_npy_parse(bytes, (size_t)entry->bytes, label, wanted, out_tensor)
            : fail(&named, "the entry's bytes are damaged: its checksum is another");
    free(unpacked);
    return is_done;
}
