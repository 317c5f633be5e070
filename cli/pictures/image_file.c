// SPDX-License-Identifier: Apache-2.0

#include "image_file.h"

#include <string.h>

#include "console.h"
#include "file_bytes.h"

typedef struct image_kind {
    const char *name;
    const char *magic;
    size_t magic_bytes;
    bool (*decode)(cli_image_decoding *d);
} image_kind;

static const image_kind kinds[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", 8, cli_image_decode_png},
    {"JPEG", "\xff\xd8\xff", 3, cli_image_decode_jpeg},
    {"PPM", "P6", 2, cli_image_decode_ppm},
    {"PPM", "P5", 2, cli_image_decode_ppm},
    {"BMP", "BM", 2, cli_image_decode_bmp},
};

static const image_kind *find_kind(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (count >= kinds[i].magic_bytes &&
            memcmp(bytes, kinds[i].magic, kinds[i].magic_bytes) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

const char *cli_image_find_kind(const uint8_t *bytes, size_t count) {
    const image_kind *kind = find_kind(bytes, count);
    return kind != NULL ? kind->name : NULL;
}

bool cli_image_decode(cli_image_decoding *d) {
    const image_kind *kind = find_kind(d->bytes, d->count);
    if (kind == NULL) {
        d->is_absent = true;
        return cli_image_fail(d, "begins as no image that is read here: PNG, JPEG, PPM or BMP");
    }
    return kind->decode(d);
}

bool cli_image_read(const char *path, cli_image *out_image) {
    cli_bytes bytes;
    *out_image = (cli_image){0};
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    cli_image_decoding d = {.bytes = bytes.data, .count = bytes.count, .image = out_image};
    const bool is_done = cli_image_decode(&d);
    if (!is_done) {
        const char *kind = cli_image_find_kind(bytes.data, bytes.count);
        cli_print_error("%s: %s%s%s", path, kind != NULL ? kind : "", kind != NULL ? ": " : "",
                        d.reason);
        cli_image_free(out_image);
    }
    cli_bytes_free(&bytes);
    return is_done;
}
