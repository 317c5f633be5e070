// image_ppm.c — binary PPM and PGM images.
// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>

#include "image_decoding.h"

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
