// image_decoding.h — what decoders of pictures share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"

enum {
    CLI_IMAGE_CHANNELS = 3,
    CLI_IMAGE_PIXELS_MAX = 100000000,  // 300 MB of RGB
    CLI_IMAGE_REASON_BYTES = 256,
};

// Rows from the top, pixels from the left, red, green, blue in sRGB, 8 bits each. Grey images have
// three equal channels; what is transparent in a file is not in the pixels.
typedef struct cli_image {
    size_t width;
    size_t height;
    uint8_t *pixels;
    int orientation;  // as EXIF counts them, 1 to 8; 0: not said
} cli_image;

void cli_image_free(cli_image *image);

// What a decoder reads and makes; a failed one leaves a reason.
typedef struct cli_image_decoding {
    const uint8_t *bytes;
    size_t count;
    size_t at;  // how far it has read
    cli_image *image;
    bool is_absent;  // nothing in this build reads such bytes
    char reason[CLI_IMAGE_REASON_BYTES];
} cli_image_decoding;

// Allocates the pixels; false when there are none, or too many.
bool cli_image_allocate(cli_image_decoding *d, uint64_t width, uint64_t height);
RONDO_PRINTF(2, 3) bool cli_image_fail(cli_image_decoding *d, const char *format, ...);

bool cli_image_decode_png(cli_image_decoding *d);
bool cli_image_decode_jpeg(cli_image_decoding *d);
bool cli_image_decode_ppm(cli_image_decoding *d);
bool cli_image_decode_bmp(cli_image_decoding *d);
