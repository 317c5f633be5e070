// SPDX-License-Identifier: Apache-2.0

#include "image_orientation.h"

#include <stdlib.h>
#include <string.h>

#include "console.h"

enum { ORIENTATION_TAG = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

// A TIFF header with its first directory, in the byte order that it says.
typedef struct tiff {
    const uint8_t *bytes;
    size_t count;
    bool is_little;
} tiff;

static uint32_t read_number(const tiff *t, size_t at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | t->bytes[at + (t->is_little ? bytes - 1 - i : i)];
    }
    return value;
}

int cli_image_find_orientation(const uint8_t *segment, size_t count) {
    if (count < 14 || memcmp(segment, "Exif\0\0", 6) != 0) {
        return 0;
    }
    const tiff t = {segment + 6, count - 6, segment[6] == 'I'};
    if (memcmp(t.bytes, t.is_little ? "II*\0" : "MM\0*", 4) != 0) {
        return 0;
    }
    const size_t directory = read_number(&t, 4, 4);
    if (directory > t.count - 2) {
        return 0;
    }
    const size_t entries = read_number(&t, directory, 2);
    for (size_t i = 0; i < entries; i++) {
        const size_t at = directory + 2 + i * ENTRY_BYTES;
        if (at + ENTRY_BYTES > t.count) {
            break;
        }
        if (read_number(&t, at, 2) == ORIENTATION_TAG && read_number(&t, at + 2, 2) == TYPE_SHORT) {
            const uint32_t value = read_number(&t, at + 8, 2);
            return value >= 1 && value <= 8 ? (int)value : 0;
        }
    }
    return 0;
}

bool cli_image_turn_upright(cli_image *image) {
    // Bit 0: columns from the right; bit 1: rows from the bottom; bit 2: rows are columns.
    static const uint8_t ways[] = {0, 0, 1, 3, 2, 4, 6, 7, 5};
    const unsigned way = ways[image->orientation];
    const bool is_turned = (way & 4u) != 0;
    const cli_image from = *image;
    image->orientation = 1;
    if (way == 0) {
        return true;
    }
    image->pixels = malloc(from.width * from.height * CLI_IMAGE_CHANNELS);
    if (image->pixels == NULL) {
        *image = from;
        return cli_fail_memory();
    }
    image->width = is_turned ? from.height : from.width;
    image->height = is_turned ? from.width : from.height;
    for (size_t y = 0; y < image->height; y++) {
        for (size_t x = 0; x < image->width; x++) {
            const size_t a = is_turned ? y : x;
            const size_t b = is_turned ? x : y;
            const size_t column = (way & 1u) != 0 ? from.width - 1 - a : a;
            const size_t row = (way & 2u) != 0 ? from.height - 1 - b : b;
            memcpy(image->pixels + (y * image->width + x) * CLI_IMAGE_CHANNELS,
                   from.pixels + (row * from.width + column) * CLI_IMAGE_CHANNELS,
                   CLI_IMAGE_CHANNELS);
        }
    }
    free(from.pixels);
    return true;
}
