// backend/cuda/compile/kernel_cache.c — see kernel_cache.h.
//
// A cache file is a 40-byte header and the machine code:
//
//   0  magic "RONDOKC1"    8  byte count, u64 little endian    16  hash of the code, 16 bytes
//   32 zero, 8 bytes       40 the code
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/compile/kernel_cache.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log/logging.h"
#include "base/memory.h"

enum {
    HEADER_BYTES = 40,
    PATH_BYTES = 1024,
    CODE_BYTES_MAX = 256 << 20,  // far beyond the code of any kernel here
};

static const char g_magic[8] = {'R', 'O', 'N', 'D', 'O', 'K', 'C', '1'};

static bool format_path(char *out_path, size_t path_bytes, const char *folder, const char *rest) {
    int length = snprintf(out_path, path_bytes, "%s%s", folder, rest);
    return length > 0 && (size_t)length < path_bytes;
}

bool rondo__kernel_cache_get_folder(char *out_path, size_t path_bytes) {
    const char *folder = getenv("RONDO_CACHE_DIR");
    if (folder != NULL) {
        return format_path(out_path, path_bytes, folder, "");
    }
    folder = getenv("XDG_CACHE_HOME");
    if (folder != NULL && folder[0] == '/') {
        return format_path(out_path, path_bytes, folder, "/rondo");
    }
    folder = getenv("HOME");
    if (folder != NULL && folder[0] == '/') {
        return format_path(out_path, path_bytes, folder, "/.cache/rondo");
    }
    return false;
}

static bool get_entry_path(rondo__hash128 key, char *out_path, size_t path_bytes) {
    char folder[PATH_BYTES];
    char digits[33];
    char rest[64];
    if (!rondo__kernel_cache_get_folder(folder, sizeof(folder))) {
        return false;
    }
    rondo__hash128_format(key, digits);
    snprintf(rest, sizeof(rest), "/kernels/%s.bin", digits);
    return format_path(out_path, path_bytes, folder, rest);
}

static void write_header(const rondo__cuda_image *image, unsigned char out_header[HEADER_BYTES]) {
    rondo__hash128 sum = rondo__hash128_bytes(image->bytes, image->byte_count);
    uint64_t fields[3] = {image->byte_count, sum.low, sum.high};
    memset(out_header, 0, HEADER_BYTES);
    memcpy(out_header, g_magic, sizeof(g_magic));
    for (size_t i = 0; i < 3; i++) {
        for (size_t byte = 0; byte < 8; byte++) {
            out_header[8 + 8 * i + byte] = (unsigned char)(fields[i] >> (8 * byte));
        }
    }
}

// The code's size by the header; 0 if the file is not ours or has another size.
static size_t get_code_bytes(const rondo__file *file) {
    uint64_t byte_count = 0;
    if (file->byte_count <= HEADER_BYTES || memcmp(file->bytes, g_magic, sizeof g_magic) != 0) {
        return 0;
    }
    for (size_t byte = 0; byte < 8; byte++) {
        byte_count |= (uint64_t)file->bytes[8 + byte] << (8 * byte);
    }
    const bool fits = byte_count == file->byte_count - HEADER_BYTES && byte_count <= CODE_BYTES_MAX;
    return fits ? (size_t)byte_count : 0;
}

bool rondo__kernel_cache_load(rondo__hash128 key, rondo__cuda_image *out_image) {
    *out_image = (rondo__cuda_image){0};
    char path[PATH_BYTES];
    // Most keys of choices are not there; a failure to open has a long text.
    if (!get_entry_path(key, path, sizeof(path)) || access(path, F_OK) != 0) {
        return false;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    bool is_found = false;
    rondo__file file = {0};
    rondo__cuda_image image = {0};
    if (rondo__file_map(path, &file) != RONDO_STATUS_OK) {
        goto restore_error;
    }
    image.byte_count = get_code_bytes(&file);
    if (image.byte_count == 0) {
        RONDO_LOG_INFO_F("kernel cache: %s is damaged; compiling again", path);
        goto unmap_file;
    }
    image.bytes = rondo__malloc(image.byte_count);
    if (image.bytes == NULL) {
        goto unmap_file;
    }
    memcpy(image.bytes, file.bytes + HEADER_BYTES, image.byte_count);
    unsigned char header[HEADER_BYTES];
    write_header(&image, header);
    is_found = memcmp(header, file.bytes, HEADER_BYTES) == 0;
    if (is_found) {
        *out_image = image;
    } else {
        RONDO_LOG_INFO_F("kernel cache: %s is damaged; compiling again", path);
        rondo__cuda_image_deinit(&image);
    }

unmap_file:
    rondo__file_unmap(&file);
restore_error:
    rondo__error_restore(&saved);
    return is_found;
}

void rondo__kernel_cache_store(rondo__hash128 key, const rondo__cuda_image *image) {
    char path[PATH_BYTES];
    if (!get_entry_path(key, path, sizeof(path))) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    char folder[PATH_BYTES];
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    unsigned char *bytes = rondo__malloc(HEADER_BYTES + image->byte_count);
    if (bytes != NULL) {
        write_header(image, bytes);
        memcpy(bytes + HEADER_BYTES, image->bytes, image->byte_count);
        if (rondo__directory_create(folder) != RONDO_STATUS_OK ||
            rondo__file_write_atomic(path, bytes, HEADER_BYTES + image->byte_count) !=
                RONDO_STATUS_OK) {
            RONDO_LOG_INFO_F("kernel cache: nothing stored: %s", rondo_error_get_last()->message);
        }
        rondo__free(bytes);
    }
    rondo__error_restore(&saved);
}
