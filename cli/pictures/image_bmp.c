// image_bmp.c — BMP images of 24 and 32 bits a pixel, as programs write them: not compressed.
// SPDX-License-Identifier: Apache-2.0
#include "image_decoding.h"

enum { HEADER_BYTES = 54, INFO_BYTES_LEAST = 40 };

static uint32_t read_number(const uint8_t *bytes, int count) {
    uint32_t number = 0;
    for (int i = count; i-- > 0;) {
        number = number << 8 | bytes[i];
    }
    return number;
}

// The rows' bytes and where they begin; false: the file is none that is read here.
static bool find_rows(cli_image_decoding *d, uint64_t width, uint64_t height, uint32_t bits,
                      uint64_t *out_row_bytes, uint64_t *out_at) {
    const uint32_t packing = read_number(d->bytes + 30, 4);
    if (packing != 0 || (bits != 24 && bits != 32)) {
        return cli_image_fail(d,
                              "has %u bits a pixel, packed in way %u; 24 and 32 that are not "
                              "packed are read",
                              (unsigned)bits, (unsigned)packing);
    }
    *out_at = read_number(d->bytes + 10, 4);
    *out_row_bytes = (width * (bits / 8) + 3) / 4 * 4;
    const uint64_t rest = *out_at >= HEADER_BYTES && *out_at < d->count ? d->count - *out_at : 0;
    return (width > 0 && height <= rest / *out_row_bytes) ||
           cli_image_fail(d, width == 0 ? "the image has no pixels"
                                        : "the file is cut short: pixels are missing");
}

bool cli_image_decode_bmp(cli_image_decoding *d) {
    if (d->count < HEADER_BYTES || read_number(d->bytes + 14, 4) < INFO_BYTES_LEAST) {
        return cli_image_fail(d, "its header is not that of a BMP image of Windows 3 or later");
    }
    const uint32_t width = read_number(d->bytes + 18, 4), bits = read_number(d->bytes + 28, 2);
    const uint32_t signed_height = read_number(d->bytes + 22, 4);
    const bool is_from_top = signed_height >> 31 != 0;
    const uint32_t height = is_from_top ? 0 - signed_height : signed_height;
    uint64_t row_bytes = 0, at = 0;
    if (!find_rows(d, width, height, bits, &row_bytes, &at) ||
        !cli_image_allocate(d, width, height)) {
        return false;
    }
    const uint64_t step = bits / 8;
    for (uint64_t y = 0; y < height; y++) {
        const uint8_t *row = d->bytes + at + (is_from_top ? y : height - 1 - y) * row_bytes;
        uint8_t *pixels = d->image->pixels + y * width * CLI_IMAGE_CHANNELS;
        for (uint64_t x = 0; x < width; x++) {
            for (int c = 0; c < CLI_IMAGE_CHANNELS; c++) {
                pixels[x * CLI_IMAGE_CHANNELS + (uint64_t)c] = row[x * step + 2 - (uint64_t)c];
            }
        }
    }
    return true;
}
