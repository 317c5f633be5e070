// image_png.c — PNG images, by libpng.
// SPDX-License-Identifier: Apache-2.0
#include "image_decoding.h"

#ifdef RONDO_HAS_PNG

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES_MAX = 8 << 20 };  // of a chunk that libpng would keep

// libpng leaves by longjmp, so all that is to be freed is here.
typedef struct png_reading {
    cli_image_decoding *d;
    png_structp png;
    png_infop info;
    png_bytep *rows;
} png_reading;

static void fail_reading(png_structp png, png_const_charp message) {
    cli_image_decoding *d = png_get_error_ptr(png);
    if (d->reason[0] == '\0') {
        cli_image_fail(d, "%s", message);
    }
    longjmp(png_jmpbuf(png), 1);
}

static void drop_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void give_bytes(png_structp png, png_bytep bytes, size_t count) {
    cli_image_decoding *d = png_get_io_ptr(png);
    if (count > d->count - d->at) {
        cli_image_fail(d, "the file is cut short");
        png_error(png, d->reason);
    }
    memcpy(bytes, d->bytes + d->at, count);
    d->at += count;
}

// Whatever the file has becomes 8 bits of red, green and blue; transparency is left out.
static void ask_for_rgb(png_reading *r) {
    const png_byte colour = png_get_color_type(r->png, r->info);
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_palette_to_rgb(r->png);
    }
    if (colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_GRAY_ALPHA) {
        png_set_expand_gray_1_2_4_to_8(r->png);
        png_set_gray_to_rgb(r->png);
    }
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    (void)png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

// Where libpng fails, control comes back to decode.
static void read_pixels(png_reading *r) {
    cli_image *image = r->d->image;
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours are below
    png_set_chunk_malloc_max(r->png, CHUNK_BYTES_MAX);
    png_set_read_fn(r->png, r->d, give_bytes);
    png_read_info(r->png, r->info);
    if (!cli_image_allocate(r->d, png_get_image_width(r->png, r->info),
                            png_get_image_height(r->png, r->info))) {
        png_error(r->png, r->d->reason);
    }
    ask_for_rgb(r);
    if (png_get_rowbytes(r->png, r->info) != image->width * CLI_IMAGE_CHANNELS) {
        png_error(r->png, "its kind of pixels is not known");
    }
    r->rows = calloc(image->height, sizeof *r->rows);
    if (r->rows == NULL) {
        png_error(r->png, "out of memory");
    }
    for (size_t y = 0; y < image->height; y++) {
        r->rows[y] = image->pixels + y * image->width * CLI_IMAGE_CHANNELS;
    }
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
}

bool cli_image_decode_png(cli_image_decoding *d) {
    png_reading reading = {.d = d};
    png_reading *volatile r = &reading;
    bool is_read = false;
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, fail_reading, drop_warning);
    r->info = r->png != NULL ? png_create_info_struct(r->png) : NULL;
    if (r->info == NULL) {
        cli_image_fail(d, "out of memory");
    } else if (setjmp(png_jmpbuf(r->png)) == 0) {
        read_pixels(r);
    }
    is_read = d->reason[0] == '\0';
    free(r->rows);
    png_destroy_read_struct(&r->png, &r->info, NULL);
    return is_read;
}

#else

bool cli_image_decode_png(cli_image_decoding *d) {
    d->is_absent = true;
    return cli_image_fail(d,
                          "this build has no libpng; save the image as binary PPM, or build with "
                          "libpng-dev");
}

#endif
