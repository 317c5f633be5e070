// SPDX-License-Identifier: Apache-2.0

#include "image_file.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "file_bytes.h"

bool cli_image_fail(cli_image_decoding *d, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->reason, sizeof d->reason, format, arguments);
    va_end(arguments);
    return false;
}

bool cli_image_allocate(cli_image_decoding *d, uint64_t width, uint64_t height) {
    if (width == 0 || height == 0) {
        return cli_image_fail(d, "the image has no pixels");
    }
    if (width > CLI_IMAGE_PIXELS_MAX || height > CLI_IMAGE_PIXELS_MAX / width) {
        return cli_image_fail(d, "the image would be %llu x %llu pixels; at most %d are read",
                              (unsigned long long)width, (unsigned long long)height,
                              CLI_IMAGE_PIXELS_MAX);
    }
    d->image->width = (size_t)width;
    d->image->height = (size_t)height;
    d->image->pixels = calloc((size_t)(width * height), CLI_IMAGE_CHANNELS);
    return d->image->pixels != NULL || cli_image_fail(d, "out of memory");
}

void cli_image_free(cli_image *image) {
    free(image->pixels);
    *image = (cli_image){0};
}

// ---- PPM and PGM --------------------------------------------------------------------------------

// A whole number of the header, behind white space and comments; UINT64_MAX: there is none.
static uint64_t read_number(cli_image_decoding *d) {
    while (d->at < d->count && (isspace(d->bytes[d->at]) || d->bytes[d->at] == '#')) {
        const bool is_comment = d->bytes[d->at] == '#';
        while (is_comment && d->at < d->count && d->bytes[d->at] != '\n') {
            d->at++;
        }
        d->at += is_comment ? 0 : 1;
    }
    uint64_t number = UINT64_MAX;
    for (size_t digits = 0; d->at < d->count && isdigit(d->bytes[d->at]) && digits < 10; digits++) {
        number = (digits > 0 ? number * 10 : 0) + (uint64_t)(d->bytes[d->at++] - '0');
    }
    return number;
}

bool cli_image_decode_ppm(cli_image_decoding *d) {
    const size_t channels = d->bytes[1] == '6' ? 3 : 1;
    d->at = 2;
    const uint64_t width = read_number(d);
    const uint64_t height = read_number(d);
    const uint64_t largest = read_number(d);
    if (width == UINT64_MAX || height == UINT64_MAX || largest == UINT64_MAX) {
        return cli_image_fail(d, "its header is not that of a PPM image");
    }
    if (largest != 255) {
        return cli_image_fail(d, "its largest value is %llu; only 255 is read",
                              (unsigned long long)largest);
    }
    d->at++;  // one white space before the pixels
    const size_t rest = d->count > d->at ? d->count - d->at : 0;
    if (width == 0 || height > rest / channels / width) {
        return cli_image_fail(d, width == 0 ? "the image has no pixels"
                                            : "the file is cut short: pixels are missing");
    }
    if (!cli_image_allocate(d, width, height)) {
        return false;
    }
    for (size_t i = 0; i < width * height * 3; i++) {
        d->image->pixels[i] = d->bytes[d->at + (channels == 3 ? i : i / 3)];
    }
    return true;
}

// ---- any ----------------------------------------------------------------------------------------

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

bool cli_image_read(const char *path, cli_image *out_image) {
    cli_bytes bytes;
    *out_image = (cli_image){0};
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    const image_kind *kind = find_kind(bytes.data, bytes.count);
    cli_image_decoding d = {.bytes = bytes.data, .count = bytes.count, .image = out_image};
    const bool is_done = kind != NULL && kind->decode(&d);
    if (kind == NULL) {
        cli_print_error("%s: begins as no image that is read here: PNG, JPEG or PPM", path);
    } else if (!is_done) {
        cli_print_error("%s: %s: %s", path, kind->name, d.reason);
        cli_image_free(out_image);
    }
    cli_bytes_free(&bytes);
    return is_done;
}
