// image_input.h — pictures as inputs of a model: size, part, values and layout.
//
// A picture is brought to a size (bilinear, with antialiasing), its middle is cut out, and each
// channel becomes (value * scale - mean) / std. What the command line does not say comes from the
// model's metadata, or else is ImageNet's convention.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "command.h"
#include "rondo/program.h"

// What the command line says; NULL: nothing.
typedef struct cli_image_settings {
    cli_list images;     // --image NAME=FILE
    const char *resize;  // "256", "320x240", "none"
    const char *crop;    // likewise
    const char *mean;    // "0.485,0.456,0.406", or one number for all channels
    const char *std;
    const char *scale;
    int layout;  // 0: from the shape, 1: NCHW, 2: NHWC
    int order;   // 0: from the metadata, or RGB; 1: RGB, 2: BGR
    bool is_upright;
} cli_image_settings;

// clang-format off
#define CLI_IMAGE_OPTION_ROWS(type, member)                                                        \
    {"--image", "NAME=FILE", CLI_LIST, offsetof(type, member.images), NULL,                        \
     "a picture for an input: PNG, JPEG, PPM or BMP; or a folder,\nof whose pictures each is "     \
     "run and gets a line"},                                                                       \
    {"--resize", "N|WxH|none", CLI_TEXT, offsetof(type, member.resize), NULL,                      \
     "the picture's shorter side, or width and height (8/7 of\nwhat is cut out: 256 for 224)"},    \
    {"--crop", "N|WxH|none", CLI_TEXT, offsetof(type, member.crop), NULL,                          \
     "what is cut out of its middle (what the input takes, or\n224x224)"},                         \
    {"--mean", "R,G,B", CLI_TEXT, offsetof(type, member.mean), NULL,                               \
     "a value V of 0 to 255 becomes (V * SCALE - MEAN) / STD\n(ImageNet's: 0.485,0.456,0.406)"},   \
    {"--std", "R,G,B", CLI_TEXT, offsetof(type, member.std), NULL,                                 \
     "(ImageNet's: 0.229,0.224,0.225; with --mean or --scale: 1)"},                                \
    {"--scale", "X", CLI_TEXT, offsetof(type, member.scale), NULL,                                 \
     "(1/255); inputs of u8 take values as they are"},                                             \
    {"--layout", NULL, CLI_CHOICE, offsetof(type, member.layout), "auto|nchw|nhwc",                \
     "where the channels are (default: where the input's shape\nhas 1 or 3)"},                     \
    {"--channels", NULL, CLI_CHOICE, offsetof(type, member.order), "auto|rgb|bgr",                 \
     "their order (default: the model's metadata, or rgb)"},                                       \
    {"--upright", NULL, CLI_SWITCH, offsetof(type, member.is_upright), NULL,                       \
     "turn the picture as its EXIF orientation says, which is\nleft alone without"}
// clang-format on

// Two extents of a picture, or what stands for them.
typedef struct cli_image_size {
    enum { CLI_SIZE_DEFAULT, CLI_SIZE_NONE, CLI_SIZE_SHORT, CLI_SIZE_BOTH } kind;
    uint64_t width;  // SHORT: of the shorter side
    uint64_t height;
} cli_image_size;

// The settings, read.
typedef struct cli_image_options {
    cli_image_size resize;
    cli_image_size crop;
    bool has_values;  // mean, std or scale were given
    double mean[3];
    double std[3];
    double scale;
    int layout;
    int order;
    bool is_upright;
} cli_image_options;

// Reads the settings; a misuse is printed, and false returned.
bool cli_image_options_read(const cli_command *command, const cli_image_settings *settings,
                            cli_image_options *out_options);

// Whether an input looks like one of pictures: of 3 or 4 axes, with 1 or 3 channels.
bool cli_image_fits(const rondo_port *port);

// Reads the picture `file` for the input `port` of a model. Says what is done with it when
// `is_told`. On failure prints why.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
bool cli_image_load(const rondo_program *program, const rondo_port *port, const char *file,
                    const cli_image_options *options, bool is_told, rondo_tensor *out_tensor);
