// SPDX-License-Identifier: Apache-2.0

#include "image_op.h"

#include <string.h>

#include "image_file.h"
#include "rondo/user_op.h"

typedef enum pixel_format { PIXELS_RGB, PIXELS_BGR, PIXELS_GREY, PIXELS_UNKNOWN } pixel_format;

static pixel_format get_format(const rondo_op_node *node) {
    static const char *const names[] = {"RGB", "BGR", "Grayscale"};
    rondo_attribute attribute;
    if (!rondo_op_get_attribute(node, "pixel_format", &attribute)) {
        return PIXELS_RGB;
    }
    int format = 0;
    while (format < PIXELS_UNKNOWN && (attribute.kind != RONDO_ATTRIBUTE_STRING ||
                                       strcmp(attribute.string_value, names[format]) != 0)) {
        format++;
    }
    return (pixel_format)format;
}

static rondo_status infer(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                          rondo_tensor *outputs, size_t output_count) {
    (void)input_count;
    (void)output_count;
    const pixel_format format = get_format(node);
    if (format == PIXELS_UNKNOWN) {
        return rondo_op_fail(node, RONDO_STATUS_BAD_DATA,
                             "attribute pixel_format is none of RGB, BGR, Grayscale");
    }
    if (inputs[0].dtype != RONDO_DTYPE_U8) {
        return rondo_op_fail(node, RONDO_STATUS_BAD_DATA, "a picture is bytes, u8");
    }
    outputs[0].dtype = RONDO_DTYPE_U8;
    outputs[0].shape = (rondo_shape){3, {-1, -1, format == PIXELS_GREY ? 1 : CLI_IMAGE_CHANNELS}};
    return RONDO_STATUS_OK;
}

// Grey as ITU-R 601 weighs colours, in 65536ths: the suite's numbers, which are Pillow's.
static uint8_t weigh(const uint8_t *rgb) {
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static rondo_status write_pixels(const cli_image *image, pixel_format format,
                                 rondo_tensor *out_pixels) {
    const rondo_shape shape = {3,
                               {(int64_t)image->height, (int64_t)image->width,
                                format == PIXELS_GREY ? 1 : CLI_IMAGE_CHANNELS}};
    const rondo_status status = rondo_tensor_init(RONDO_DTYPE_U8, &shape, out_pixels);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    uint8_t *to = out_pixels->data;
    for (size_t i = 0; i < image->width * image->height; i++) {
        const uint8_t *rgb = image->pixels + i * CLI_IMAGE_CHANNELS;
        if (format == PIXELS_GREY) {
            to[i] = weigh(rgb);
            continue;
        }
        for (int c = 0; c < CLI_IMAGE_CHANNELS; c++) {
            to[i * CLI_IMAGE_CHANNELS + (size_t)c] = rgb[format == PIXELS_RGB ? c : 2 - c];
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                            rondo_tensor *outputs, size_t output_count) {
    (void)input_count;
    (void)output_count;
    cli_image image = {0};
    cli_image_decoding d = {.bytes = inputs[0].data,
                            .count = (size_t)rondo_shape_get_count(&inputs[0].shape),
                            .image = &image};
    rondo_status status = RONDO_STATUS_OK;
    if (!cli_image_decode(&d)) {
        status = rondo_op_fail(node, d.is_absent ? RONDO_STATUS_UNSUPPORTED : RONDO_STATUS_BAD_DATA,
                               d.reason);
    } else if (outputs[0].dtype != RONDO_DTYPE_NONE) {
        status = write_pixels(&image, get_format(node), &outputs[0]);
    }
    cli_image_free(&image);
    return status;
}

void cli_image_register_op(void) {
    static const char *const attributes[] = {"pixel_format", NULL};
    const rondo_op_definition definition = {.struct_size = sizeof definition,
                                            .domain = "ai.onnx",
                                            .name = "ImageDecoder",
                                            .version_min = 20,
                                            .input_min = 1,
                                            .input_max = 1,
                                            .output_min = 1,
                                            .output_max = 1,
                                            .attributes = attributes,
                                            .infer = infer,
                                            .compute = compute};
    // Without it such models are refused by the op's name.
    (void)!rondo_op_register(&definition);
}
