// image_resize.c — see image_resize.h.
//
// A pixel of the result at x has its centre at (x + 1/2) * scale of the source. The triangle around
// it reaches scale to both sides, or 1 where the image grows; its weights at the centres of source
// pixels, brought to a sum of 1, are what these count. Weights are whole numbers of 2^-22, so that
// the result is the same on every processor.
// SPDX-License-Identifier: Apache-2.0
#include "image_resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"

enum { WEIGHT_BITS = 22, CHANNELS = CLI_IMAGE_CHANNELS };

// What one pixel of the result is made of: `count` source pixels from `first` on.
typedef struct taps {
    size_t first;
    size_t count;
    int32_t *weights;
} taps;

// Of all pixels along one axis; the weights lie in one block behind the taps.
static taps *make_taps(size_t from, size_t to) {
    const double scale = (double)from / (double)to;
    const double reach = scale > 1.0 ? scale : 1.0;
    const size_t most = 2 * (size_t)ceil(reach) + 1;
    taps *list = calloc(to, sizeof *list);
    int32_t *weights = calloc(to * most, sizeof *weights);
    double *shares = calloc(most, sizeof *shares);
    if (list == NULL || weights == NULL || shares == NULL) {
        free(list);
        free(weights);
        free(shares);
        return NULL;
    }
    for (size_t x = 0; x < to; x++) {
        const double centre = ((double)x + 0.5) * scale;
        const double begin = fmax(centre - reach + 0.5, 0.0);
        const double end = fmin(centre + reach + 0.5, (double)from);
        double sum = 0.0;
        taps *t = &list[x];
        *t = (taps){(size_t)begin, (size_t)end - (size_t)begin, weights + x * most};
        for (size_t i = 0; i < t->count; i++) {
            const double distance = fabs(((double)(t->first + i) + 0.5 - centre) / reach);
            shares[i] = fmax(1.0 - distance, 0.0);
            sum += shares[i];
        }
        for (size_t i = 0; i < t->count; i++) {
            t->weights[i] = (int32_t)(shares[i] / sum * (double)(1 << WEIGHT_BITS) + 0.5);
        }
    }
    free(shares);
    return list;
}

static void free_taps(taps *list) {
    if (list != NULL) {
        free(list[0].weights);
        free(list);
    }
}

// The sum of `count` bytes that lie `stride` apart, each times its weight.
static uint8_t weigh(const uint8_t *source, size_t stride, const taps *t) {
    int64_t sum = (int64_t)1 << (WEIGHT_BITS - 1);
    for (size_t i = 0; i < t->count; i++) {
        sum += (int64_t)source[i * stride] * t->weights[i];
    }
    sum >>= WEIGHT_BITS;
    return (uint8_t)(sum < 255 ? sum : 255);
}

// Along rows (is_row) or columns. Takes what `image` was.
static bool resize_axis(cli_image *image, bool is_row, size_t extent) {
    const size_t from = is_row ? image->width : image->height;
    cli_image next = {.width = is_row ? extent : image->width,
                      .height = is_row ? image->height : extent,
                      .orientation = image->orientation};
    if (from == extent) {
        return true;
    }
    taps *list = make_taps(from, extent);
    next.pixels = list != NULL ? malloc(next.width * next.height * CHANNELS) : NULL;
    if (next.pixels == NULL) {
        free_taps(list);
        return cli_fail_memory();
    }
    const size_t row_bytes = image->width * CHANNELS;
    const size_t stride = is_row ? (size_t)CHANNELS : row_bytes;
    uint8_t *out = next.pixels;
    for (size_t y = 0; y < next.height; y++) {
        for (size_t i = 0; i < next.width * CHANNELS; i++) {
            const taps *t = &list[is_row ? i / CHANNELS : y];
            const size_t row = is_row ? y : t->first;
            const size_t column = is_row ? t->first * CHANNELS + i % CHANNELS : i;
            *out++ = weigh(image->pixels + row * row_bytes + column, stride, t);
        }
    }
    free_taps(list);
    cli_image_free(image);
    *image = next;
    return true;
}

bool cli_image_resize(cli_image *image, size_t width, size_t height) {
    const size_t taller = height > image->height ? height : image->height;
    if (width > CLI_IMAGE_PIXELS_MAX / taller) {
        cli_print_error("an image of %zu x %zu pixels is too large; at most %d are made", width,
                        taller, CLI_IMAGE_PIXELS_MAX);
        return false;
    }
    return resize_axis(image, true, width) && resize_axis(image, false, height);
}

// Half of what is left over; of an odd number the even one of the two halves.
static size_t get_margin(size_t whole, size_t part) {
    const size_t half = (whole - part) / 2;
    return half + ((whole - part) % 2 == 1 && half % 2 == 1 ? 1 : 0);
}

void cli_image_crop(cli_image *image, size_t width, size_t height) {
    const size_t left = get_margin(image->width, width);
    const size_t top = get_margin(image->height, height);
    for (size_t y = 0; y < height; y++) {
        memmove(image->pixels + y * width * CHANNELS,
                image->pixels + ((top + y) * image->width + left) * CHANNELS, width * CHANNELS);
    }
    image->width = width;
    image->height = height;
}
