// SPDX-License-Identifier: Apache-2.0

#include "image_decoding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
