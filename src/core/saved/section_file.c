// saved/section_file.c — see section_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "saved/section_file.h"

#include <string.h>

#include "base/crew.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "tensor/storage.h"

enum {
    FRAME_VERSION = 1,
    PART_BYTES = 1 << 20,         // of a section, hashed by itself
    PART_WORK = PART_BYTES / 16,  // what that is for threads: it takes 0.1 ms
    SMALL_ALIGNMENT = 64,
};

enum { MAGIC_BYTES = 8 };

const rondo__section_kind rondo__plan_file_kind = {"RondoPln", "plan file"};
const rondo__section_kind rondo__graph_file_kind = {"RondoGrf", "graph file"};

typedef struct file_head {
    char magic[MAGIC_BYTES];
    uint32_t version;
    uint32_t section_count;
    uint64_t byte_count;  // of the file
    uint64_t reserved;    // 0
    rondo__hash128 sum;   // of the head with this field zeroed, and the table
    uint8_t padding[16];  // 0
} file_head;

typedef struct table_row {
    char name[RONDO__SECTION_NAME_BYTES];
    uint32_t version;
    uint32_t reserved;  // 0
    uint64_t offset;
    uint64_t byte_count;
    rondo__hash128 sum;
    uint8_t padding[16];  // 0
} table_row;

_Static_assert(sizeof(file_head) == 64 && sizeof(table_row) == 64, "as the file has them");

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

// Whether the first bytes of a file are those of one of this kind.
static bool is_one(const rondo__section_kind *kind, const void *bytes, size_t byte_count) {
    return byte_count >= MAGIC_BYTES && memcmp(bytes, kind->magic, MAGIC_BYTES) == 0;
}

// ---- checksums --------------------------------------------------------------------------------

static uint64_t mix(uint64_t sum, uint64_t word) {
    sum += word * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (sum << 31 | sum >> 33) * UINT64_C(0x9e3779b185ebca87);
}

static uint64_t mix_bytes(uint64_t sum, const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return mix(sum, word);
}

// Four sums side by side, so that the processor does not wait for one multiplication after the
// other: a file is read at the speed of memory. They are four names and no array, which compilers
// keep in memory.
static rondo__hash128 hash_part(const uint8_t *bytes, size_t byte_count) {
    enum { STEP = 32 };
    uint64_t a = 1, b = 2, c = 3, d = 4;
    size_t at = 0;
    for (; at + STEP <= byte_count; at += STEP) {
        a = mix_bytes(a, bytes + at);
        b = mix_bytes(b, bytes + at + 8);
        c = mix_bytes(c, bytes + at + 16);
        d = mix_bytes(d, bytes + at + 24);
    }
    const rondo__hash128 rest = rondo__hash128_bytes(bytes + at, byte_count - at);
    const uint64_t sums[] = {mix(a, rest.low), mix(b, rest.high), c, d, byte_count};
    return rondo__hash128_bytes(sums, sizeof sums);
}

typedef struct hashing {
    const uint8_t *bytes;
    size_t byte_count;
    rondo__hash128 *sums;
} hashing;

static void hash_parts(void *data, size_t first, size_t last) {
    const hashing *h = data;
    for (size_t i = first; i < last; ++i) {
        const size_t begin = i * PART_BYTES;
        const size_t left = h->byte_count - begin;
        h->sums[i] = hash_part(h->bytes + begin, left < PART_BYTES ? left : PART_BYTES);
    }
}

// Of the checksums of its parts, so that threads share the work.
static rondo_status hash_section(const uint8_t *bytes, size_t byte_count, rondo__hash128 *out_sum) {
    const size_t count = (byte_count + PART_BYTES - 1) / PART_BYTES;
    hashing h = {.bytes = bytes, .byte_count = byte_count};
    h.sums = rondo__calloc(count + 1, sizeof *h.sums);
    if (h.sums == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__crew_run(count, PART_WORK, hash_parts, &h);
    *out_sum = rondo__hash128_bytes(h.sums, count * sizeof *h.sums);
    rondo__free(h.sums);
    return RONDO_STATUS_OK;
}

static bool is_equal(rondo__hash128 a, rondo__hash128 b) {
    return a.low == b.low && a.high == b.high;
}

// `head` is the file's start, with its table.
static rondo_status hash_head(const uint8_t *head, size_t byte_count, rondo__hash128 *out_sum) {
    uint8_t *copy = rondo__malloc(byte_count);
    if (copy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(copy, head, byte_count);
    memset(copy + offsetof(file_head, sum), 0, sizeof(rondo__hash128));
    *out_sum = rondo__hash128_bytes(copy, byte_count);
    rondo__free(copy);
    return RONDO_STATUS_OK;
}

// ---- writing ----------------------------------------------------------------------------------

// Hashes a section that is in pieces, and lists these as they come in the file.
typedef struct writer {
    rondo__file_part *parts;
    size_t part_count, part_capacity;
    uint64_t at;  // how far the file is
    // The part of a section that is being hashed.
    uint8_t *part;
    size_t filled;
    rondo__hash128 *sums;
    size_t sum_count, sum_capacity;
} writer;

static const uint8_t zeros[RONDO__SECTION_ALIGNMENT];

static rondo_status end_part(writer *w) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(w->sums, w->sum_capacity, w->sum_count + 1));
    w->sums[w->sum_count++] = hash_part(w->part, w->filled);
    w->filled = 0;
    return RONDO_STATUS_OK;
}

static rondo_status add_hashed(writer *w, const uint8_t *bytes, size_t byte_count) {
    while (byte_count > 0) {
        const size_t room = PART_BYTES - w->filled;
        const size_t count = byte_count < room ? byte_count : room;
        memcpy(w->part + w->filled, bytes, count);
        w->filled += count;
        bytes += count;
        byte_count -= count;
        if (w->filled == PART_BYTES) {
            RETURN_IF_ERROR(end_part(w));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_bytes(writer *w, const void *bytes, size_t byte_count, bool is_hashed) {
    if (byte_count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(w->parts, w->part_capacity, w->part_count + 1));
    w->parts[w->part_count++] = (rondo__file_part){bytes, byte_count};
    w->at += byte_count;
    return is_hashed ? add_hashed(w, bytes, byte_count) : RONDO_STATUS_OK;
}

// Zeros, up to `to` in the file.
static rondo_status pad(writer *w, uint64_t to, bool is_hashed) {
    while (w->at < to) {
        const uint64_t missing = to - w->at;
        RETURN_IF_ERROR(add_bytes(w, zeros, missing < sizeof zeros ? (size_t)missing : sizeof zeros,
                                  is_hashed));
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_section(writer *w, const rondo__section_source *source, uint64_t alignment,
                                table_row *row) {
    RETURN_IF_ERROR(pad(w, round_up(w->at, alignment), false));
    const uint64_t begin = w->at;
    w->sum_count = 0;
    for (size_t i = 0; i < source->piece_count; ++i) {
        const rondo__section_piece *piece = &source->pieces[i];
        RETURN_IF_ERROR(pad(w, begin + piece->offset, true));
        RETURN_IF_ERROR(add_bytes(w, piece->bytes, piece->byte_count, true));
    }
    if (w->filled > 0) {
        RETURN_IF_ERROR(end_part(w));
    }
    memcpy(row->name, source->name, strnlen(source->name, sizeof row->name));
    row->version = source->version;
    row->offset = begin;
    row->byte_count = w->at - begin;
    row->sum = rondo__hash128_bytes(w->sums, w->sum_count * sizeof *w->sums);
    return RONDO_STATUS_OK;
}

static rondo_status fill_file(writer *w, const rondo__section_kind *kind,
                              const rondo__section_source *sections, size_t count, uint8_t *front,
                              size_t front_bytes) {
    file_head head = {
        .version = FRAME_VERSION,
        .section_count = (uint32_t)count,
    };
    memcpy(head.magic, kind->magic, MAGIC_BYTES);
    RETURN_IF_ERROR(add_bytes(w, front, front_bytes, false));
    for (size_t i = 0; i < count; ++i) {
        table_row row = {.reserved = 0};
        RETURN_IF_ERROR(add_section(
            w, &sections[i], i + 1 < count ? SMALL_ALIGNMENT : RONDO__SECTION_ALIGNMENT, &row));
        memcpy(front + sizeof head + i * sizeof row, &row, sizeof row);
    }
    // What reads a form of a constant may look a little further.
    RETURN_IF_ERROR(pad(w, round_up(w->at + SMALL_ALIGNMENT, SMALL_ALIGNMENT), false));
    head.byte_count = w->at;
    memcpy(front, &head, sizeof head);
    RETURN_IF_ERROR(hash_head(front, front_bytes, &head.sum));
    memcpy(front, &head, sizeof head);
    return RONDO_STATUS_OK;
}

rondo_status rondo__section_file_write(const rondo__section_kind *kind, const char *path,
                                       const rondo__section_source *sections,
                                       size_t section_count) {
    const size_t front_bytes = sizeof(file_head) + section_count * sizeof(table_row);
    writer w = {.part = rondo__malloc(PART_BYTES)};
    uint8_t *front = rondo__calloc(1, front_bytes);
    rondo_status status =
        w.part != NULL && front != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = fill_file(&w, kind, sections, section_count, front, front_bytes);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__file_write_parts(path, w.parts, w.part_count);
    }
    rondo__free(front);
    rondo__free(w.part);
    rondo__free(w.parts);
    rondo__free(w.sums);
    return status;
}

// ---- reading ----------------------------------------------------------------------------------

static rondo_status check_head(const rondo__section_kind *kind, const rondo__file *file,
                               file_head *out_head) {
    const char *name = kind->name;
    if (!is_one(kind, file->bytes, file->byte_count)) {
        return RONDO_FAIL(BAD_DATA, "this is no %s of Rondo", name);
    }
    if (file->byte_count < sizeof *out_head) {
        return RONDO_FAIL(BAD_DATA, "the %s was cut short: it has %zu bytes", name,
                          file->byte_count);
    }
    memcpy(out_head, file->bytes, sizeof *out_head);
    if (out_head->version != FRAME_VERSION) {
        return RONDO_FAIL(UNSUPPORTED,
                          "the %s is of version %u, this library reads version %d: make it anew "
                          "with this library",
                          name, (unsigned)out_head->version, FRAME_VERSION);
    }
    const size_t front_bytes = sizeof *out_head + out_head->section_count * sizeof(table_row);
    if (out_head->section_count > RONDO__SECTION_COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "the %s was altered: it says that it has %u sections", name,
                          (unsigned)out_head->section_count);
    }
    if (file->byte_count < front_bytes) {
        return RONDO_FAIL(BAD_DATA, "the %s was cut short: it has %zu bytes", name,
                          file->byte_count);
    }
    rondo__hash128 sum;
    RETURN_IF_ERROR(hash_head(file->bytes, front_bytes, &sum));
    if (!is_equal(sum, out_head->sum)) {
        return RONDO_FAIL(BAD_DATA, "the %s was altered: the checksum of its table does not fit",
                          name);
    }
    if (file->byte_count != out_head->byte_count) {
        return RONDO_FAIL(BAD_DATA, "the %s was %s: it has %zu bytes of %llu", name,
                          file->byte_count < out_head->byte_count ? "cut short" : "altered",
                          file->byte_count, (unsigned long long)out_head->byte_count);
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_section(const rondo__section_kind *kind, const rondo__file *file,
                                 const table_row *row, rondo__section *out_section) {
    if (row->offset > file->byte_count || row->byte_count > file->byte_count - row->offset ||
        row->offset % SMALL_ALIGNMENT != 0) {
        return RONDO_FAIL(BAD_DATA, "the %s was altered: a section lies outside of it", kind->name);
    }
    memcpy(out_section->name, row->name, sizeof row->name);
    out_section->version = row->version;
    out_section->bytes = file->bytes + row->offset;
    out_section->byte_count = (size_t)row->byte_count;
    out_section->sum = row->sum;
    rondo__hash128 sum;
    RETURN_IF_ERROR(hash_section(out_section->bytes, out_section->byte_count, &sum));
    return is_equal(sum, row->sum)
               ? RONDO_STATUS_OK
               : RONDO_FAIL(BAD_DATA,
                            "the %s was altered: the checksum of its section \"%s\" does not fit",
                            kind->name, out_section->name);
}

// What no checksum covers is zero.
static rondo_status check_padding(const rondo__section_kind *kind, const rondo__file *file,
                                  uint64_t begin, uint64_t past) {
    for (uint64_t at = begin; at < past; at += sizeof zeros) {
        const uint64_t left = past - at;
        if (memcmp(file->bytes + at, zeros, left < sizeof zeros ? left : sizeof zeros) != 0) {
            return RONDO_FAIL(BAD_DATA,
                              "the %s was altered: bytes from %llu on, between sections, are not 0",
                              kind->name, (unsigned long long)at);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_sections(const rondo__file *file, rondo__section_file *out_file) {
    file_head head;
    RETURN_IF_ERROR(check_head(out_file->kind, file, &head));
    out_file->byte_count = file->byte_count;
    uint64_t at = sizeof head + head.section_count * sizeof(table_row);
    for (size_t i = 0; i < head.section_count; ++i) {
        table_row row;
        memcpy(&row, file->bytes + sizeof head + i * sizeof row, sizeof row);
        RETURN_IF_ERROR(read_section(out_file->kind, file, &row, &out_file->sections[i]));
        out_file->section_count = i + 1;
        RETURN_IF_ERROR(check_padding(out_file->kind, file, at, row.offset));
        at = row.offset + row.byte_count;
    }
    return check_padding(out_file->kind, file, at, file->byte_count);
}

rondo_status rondo__section_file_open(const rondo__section_kind *kind, const char *path,
                                      rondo__section_file *out_file) {
    *out_file = (rondo__section_file){.kind = kind};
    rondo__file file;
    RETURN_IF_ERROR(rondo__storage_map_file(path, NULL, &out_file->storage, &file));
    rondo__crew_enter();
    const rondo_status status = read_sections(&file, out_file);
    rondo__crew_leave();
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("%s", path);
        rondo__section_file_close(out_file);
    }
    return status;
}

void rondo__section_file_close(rondo__section_file *file) {
    rondo__storage_release(file->storage);
    *file = (rondo__section_file){0};
}

const rondo__section *rondo__section_file_find(const rondo__section_file *file, const char *name) {
    for (size_t i = 0; i < file->section_count; ++i) {
        if (strcmp(file->sections[i].name, name) == 0) {
            return &file->sections[i];
        }
    }
    return NULL;
}
