// onnx/external.c — see external.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/external.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "onnx/file_kinds.h"

// Converters write one file, or one for each tensor.
enum { FILE_COUNT_MAX = 65536 };

void rondo__external_deinit(rondo__tensor_reader *reader) {
    for (size_t i = 0; i < reader->external_count; ++i) {
        rondo__source_release(reader->externals[i].source);
        rondo__free(reader->externals[i].location);
    }
    rondo__namemap_deinit(&reader->external_index);
    rondo__free(reader->externals);
    reader->externals = NULL;
    reader->external_count = 0;
    reader->external_capacity = 0;
}

// Reads a decimal number.
static rondo_status read_number(const char *owner, const char *key, const char *text,
                                uint64_t *out_number) {
    uint64_t number = 0;
    bool is_number = text[0] != '\0';
    bool fits = true;
    for (const char *digit = text; *digit != '\0' && is_number; ++digit) {
        is_number = *digit >= '0' && *digit <= '9';
        fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_add_overflow(number, (uint64_t)(*digit - '0'), &number);
    }
    if (!is_number) {
        return RONDO_FAIL(BAD_DATA, "%s: external %s \"%.40s\" is no whole number from 0 on", owner,
                          key, text);
    }
    if (!fits) {
        return RONDO_FAIL(BAD_DATA, "%s: external %s %.40s is larger than any file", owner, key,
                          text);
    }
    *out_number = number;
    return RONDO_STATUS_OK;
}

static rondo_status open_file(rondo__tensor_reader *reader, const char *location,
                              rondo__source **out_source) {
    const int32_t known = rondo__namemap_find(&reader->external_index, location, -1);
    if (known >= 0) {
        *out_source = reader->externals[known].source;
        return RONDO_STATUS_OK;
    }
    if (reader->external_count >= FILE_COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "the model names more than %d external files", FILE_COUNT_MAX);
    }
    rondo_status status = RONDO__ARRAY_RESERVE(reader->externals, reader->external_capacity,
                                               reader->external_count + 1);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    char *copy = rondo__strdup(location);
    if (copy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    bool is_new = false;
    status = rondo__source_map_beside(reader->path, location, out_source);
    if (status == RONDO_STATUS_OK) {
        status = rondo__namemap_add(&reader->external_index, copy, (int32_t)reader->external_count,
                                    &is_new);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__source_release(*out_source);
        *out_source = NULL;
        rondo__free(copy);
        return status;
    }
    reader->externals[reader->external_count++] =
        (rondo__external_file){.location = copy, .source = *out_source};
    reader->external_bytes += rondo__source_get_byte_count(*out_source);
    return RONDO_STATUS_OK;
}

rondo_status rondo__external_find(rondo__tensor_reader *reader, const Onnx__TensorProto *proto,
                                  const char *owner, size_t needed_bytes,
                                  rondo__external_range *out_range) {
    const char *location = NULL;
    uint64_t offset = 0;
    uint64_t length = needed_bytes;
    *out_range = (rondo__external_range){0};
    for (size_t i = 0; i < proto->n_external_data; ++i) {
        const char *key = proto->external_data[i]->key;
        const char *value = proto->external_data[i]->value;
        if (key == NULL || value == NULL) {
            return RONDO_FAIL(BAD_DATA, "%s has an external_data entry without key or value",
                              owner);
        }
        if (strcmp(key, "location") == 0) {
            location = value;
        } else if (strcmp(key, "offset") == 0) {
            RETURN_IF_ERROR(read_number(owner, key, value, &offset));
        } else if (strcmp(key, "length") == 0) {
            RETURN_IF_ERROR(read_number(owner, key, value, &length));
        }
    }
    if (location == NULL) {
        return RONDO_FAIL(BAD_DATA, "%s is external but names no location", owner);
    }
    if (length != needed_bytes) {
        return RONDO_FAIL(BAD_DATA, "%s: external length is %llu; its shape needs %zu bytes", owner,
                          (unsigned long long)length, needed_bytes);
    }
    if (reader->path == NULL) {
        return RONDO_FAIL(
            UNSUPPORTED, "unsupported: %s is external, and a model in memory has no folder", owner);
    }
    rondo__source *source = NULL;
    rondo_status status = open_file(reader, location, &source);
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("%s", owner);
        return status;
    }
    size_t file_bytes = rondo__source_get_byte_count(source);
    if (offset > file_bytes || length > file_bytes - offset) {
        const char *kind = rondo__file_kind_explain(rondo__source_get_bytes(source), file_bytes);
        if (kind != NULL) {
            return RONDO_FAIL(BAD_DATA, "%s: its external data \"%.60s\" is %s", owner, location,
                              kind);
        }
        return RONDO_FAIL(BAD_DATA,
                          "%s: external %llu bytes from %llu on lie beyond the end of \"%.60s\" "
                          "(%zu bytes)",
                          owner, (unsigned long long)length, (unsigned long long)offset, location,
                          file_bytes);
    }
    out_range->source = source;
    out_range->bytes = needed_bytes == 0 ? NULL : rondo__source_get_bytes(source) + offset;
    return RONDO_STATUS_OK;
}
