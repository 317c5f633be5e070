// image_jpeg.c — JPEG images, by libjpeg.
// SPDX-License-Identifier: Apache-2.0
#include "image_decoding.h"
#include "image_orientation.h"

#ifdef RONDO_HAS_JPEG

#include <setjmp.h>
#include <stdio.h>  // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

enum {
    SCANS_MAX = 500,            // of a progressive image; each is decoded
    MARKER_BYTES_MAX = 0xffff,  // any segment of EXIF's kind is kept whole
    EXIF_MARKER = JPEG_APP0 + 1,
};

// libjpeg leaves by an error handler, so all that is to be freed is here.
typedef struct jpeg_reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    cli_image_decoding *d;
} jpeg_reading;

static void fail_reading(j_common_ptr jpeg) {
    jpeg_reading *r = jpeg->client_data;
    char text[JMSG_LENGTH_MAX];
    if (r->d->reason[0] == '\0') {
        jpeg->err->format_message(jpeg, text);
        cli_image_fail(r->d, "%s", text);
    }
    longjmp(r->back, 1);
}

// libjpeg fills in grey for what is missing and only warns.
static void hear_warning(j_common_ptr jpeg, int level) {
    jpeg_reading *r = jpeg->client_data;
    if (level < 0 &&
        (jpeg->err->msg_code == JWRN_JPEG_EOF || jpeg->err->msg_code == JWRN_HIT_MARKER)) {
        cli_image_fail(r->d, "the file is cut short or damaged");
        fail_reading(jpeg);
    }
}

static void count_scans(j_common_ptr jpeg) {
    jpeg_reading *r = jpeg->client_data;
    if (r->jpeg.input_scan_number > SCANS_MAX) {
        cli_image_fail(r->d, "has more than %d scans", SCANS_MAX);
        fail_reading(jpeg);
    }
}

static void find_orientation(jpeg_reading *r) {
    for (jpeg_saved_marker_ptr marker = r->jpeg.marker_list; marker != NULL;
         marker = marker->next) {
        if (marker->marker == EXIF_MARKER && r->d->image->orientation == 0) {
            r->d->image->orientation =
                cli_image_find_orientation(marker->data, marker->data_length);
        }
    }
}

// Where libjpeg fails, control comes back to decode.
static void read_pixels(jpeg_reading *r) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &r->progress;
    jpeg_mem_src(jpeg, r->d->bytes, (unsigned long)r->d->count);
    jpeg_save_markers(jpeg, EXIF_MARKER, MARKER_BYTES_MAX);
    (void)jpeg_read_header(jpeg, TRUE);
    find_orientation(r);
    if (jpeg->num_components != 1 && jpeg->num_components != 3) {
        cli_image_fail(r->d, "has %d channels (CMYK?); save it as RGB", jpeg->num_components);
        fail_reading((j_common_ptr)jpeg);
    }
    if (!cli_image_allocate(r->d, jpeg->image_width, jpeg->image_height)) {
        fail_reading((j_common_ptr)jpeg);
    }
    jpeg->out_color_space = JCS_RGB;  // also of grey
    (void)jpeg_start_decompress(jpeg);
    const size_t row_bytes = r->d->image->width * CLI_IMAGE_CHANNELS;
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = r->d->image->pixels + jpeg->output_scanline * row_bytes;
        (void)jpeg_read_scanlines(jpeg, &row, 1);
    }
    (void)jpeg_finish_decompress(jpeg);
}

bool cli_image_decode_jpeg(cli_image_decoding *d) {
    jpeg_reading reading = {.d = d};
    jpeg_reading *volatile r = &reading;
    r->jpeg.client_data = r;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = fail_reading;
    r->errors.emit_message = hear_warning;
    r->progress.progress_monitor = count_scans;
    if (setjmp(r->back) == 0) {
        read_pixels(r);
    }
    jpeg_destroy_decompress(&r->jpeg);
    return d->reason[0] == '\0';
}

#else

bool cli_image_decode_jpeg(cli_image_decoding *d) {
    d->is_absent = true;
    return cli_image_fail(d,
                          "this build has no libjpeg; save the image as binary PPM, or build with "
                          "libjpeg-dev");
}

#endif
