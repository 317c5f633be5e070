#include "onnx/external.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

// Converters write one file, or one for each tensor.
enum { FILE_COUNT_MAX = 65536 };

void rondo__external_deinit(rondo__tensor_reader *reader) {
    for (size_t i = 0; i < reader->external_count; ++i) {
        rondo__source_release(reader->externals[i].source);
        rondo__free(reader->externals[i].location);
    }
    rondo__free(reader->externals);
    reader->externals = NULL;
    reader->external_count = 0;
    reader->external_capacity = 0;
}

// A location inside the model's folder: relative, without a ".." component.
static bool is_location_inside(const char *location) {
    if (location[0] == '\0' || location[0] == '/' || strchr(location, '\\') != NULL) {
        return false;
    }
    for (const char *part = location; part != NULL;) {
        const char *slash = strchr(part, '/');
        size_t length = slash == NULL ? strlen(part) : (size_t)(slash - part);
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            return false;
        }
        part = slash == NULL ? NULL : slash + 1;
    }
    return true;
}

// Reads a decimal number of at most 18 digits.
static bool read_number(const char *text, uint64_t *out_number) {
    uint64_t number = 0;
    size_t length = strlen(text);
    if (length == 0 || length > 18) {
        return false;
    }
    for (size_t i = 0; i < length; ++i) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    *out_number = number;
    return true;
}

static rondo_status open_file(rondo__tensor_reader *reader, const char *location,
                              rondo__source **out_source) {
    // The file used last is nearly always the one used next.
    for (size_t i = reader->external_count; i-- > 0;) {
        if (strcmp(reader->externals[i].location, location) == 0) {
            *out_source = reader->externals[i].source;
            return RONDO_STATUS_OK;
        }
    }
    if (reader->external_count >= FILE_COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "the model names more than %d external files", FILE_COUNT_MAX);
    }
    rondo_status status =
        rondo__array_reserve((void **)&reader->externals, &reader->external_capacity,
                             reader->external_count + 1, sizeof(*reader->externals));
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    const char *slash = strrchr(reader->path, '/');
    int folder_length = slash == NULL ? 0 : (int)(slash - reader->path) + 1;
    char *path = rondo__strformat("%.*s%s", folder_length, reader->path, location);
    if (path == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    char *copy = rondo__strdup(location);
    if (copy == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_path;
    }
    status = rondo__source_map(path, out_source);
    if (status != RONDO_STATUS_OK) {
        rondo__free(copy);
        goto free_path;
    }
    reader->externals[reader->external_count++] =
        (rondo__external_file){.location = copy, .source = *out_source};
    reader->external_bytes += rondo__source_get_byte_count(*out_source);

free_path:
    rondo__free(path);
    return status;
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
        } else if ((strcmp(key, "offset") == 0 && !read_number(value, &offset)) ||
                   (strcmp(key, "length") == 0 && !read_number(value, &length))) {
            return RONDO_FAIL(BAD_DATA, "%s: external %s \"%.40s\" is not a number", owner, key,
                              value);
        }
    }
    if (location == NULL) {
        return RONDO_FAIL(BAD_DATA, "%s is external but names no location", owner);
    }
    if (!is_location_inside(location)) {
        return RONDO_FAIL(BAD_DATA,
                          "%s: external location \"%.80s\" leads out of the model's folder", owner,
                          location);
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
        return RONDO_FAIL(BAD_DATA,
                          "%s: external bytes %llu to %llu lie beyond the end of \"%.60s\" (%zu)",
                          owner, (unsigned long long)offset, (unsigned long long)(offset + length),
                          location, file_bytes);
    }
    out_range->source = source;
    out_range->bytes = needed_bytes == 0 ? NULL : rondo__source_get_bytes(source) + offset;
    return RONDO_STATUS_OK;
}
