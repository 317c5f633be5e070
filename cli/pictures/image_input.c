// SPDX-License-Identifier: Apache-2.0

#include "image_input.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_file.h"
#include "image_orientation.h"
#include "image_resize.h"
#include "session_text.h"
#include "tensor_text.h"

enum { SIZE_DEFAULT = 224, EXTENT_MAX = 1 << 16 };

// ---- the command line ---------------------------------------------------------------------------

static bool read_extent(const char *text, char end, uint64_t *out_extent, const char **out_rest) {
    char *rest = NULL;
    errno = 0;
    const unsigned long long extent =
        text[0] >= '0' && text[0] <= '9' ? strtoull(text, &rest, 10) : 0;
    if (errno != 0 || extent == 0 || extent > EXTENT_MAX || *rest != end) {
        return false;
    }
    *out_extent = extent;
    *out_rest = rest + 1;
    return true;
}

static bool read_size(const cli_command *command, const char *option, const char *text,
                      cli_image_size *out_size) {
    const char *rest = NULL;
    *out_size = (cli_image_size){.kind = CLI_SIZE_DEFAULT};
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, "none") == 0) {
        out_size->kind = CLI_SIZE_NONE;
        return true;
    }
    if (read_extent(text, '\0', &out_size->width, &rest)) {
        out_size->kind = CLI_SIZE_SHORT;
        out_size->height = out_size->width;
        return true;
    }
    if (read_extent(text, 'x', &out_size->width, &rest) &&
        read_extent(rest, '\0', &out_size->height, &rest)) {
        out_size->kind = CLI_SIZE_BOTH;
        return true;
    }
    cli_fail_misuse(command, "%s \"%s\": write it as in %s 256, %s 320x240 or %s none; at most %d",
                    option, text, option, option, option, EXTENT_MAX);
    return false;
}

// "0.485,0.456,0.406", or one number for all three.
static bool read_three(const cli_command *command, const char *option, const char *text,
                       bool may_be_zero, double *values) {
    const char *at = text;
    size_t count = 0;
    bool is_fine = true;
    while (is_fine && count < 3) {
        char *end = NULL;
        values[count] = strtod(at, &end);
        is_fine = end != at && (*end == ',' || *end == '\0') && isfinite(values[count]) &&
                  (may_be_zero || values[count] != 0.0);
        count++;
        if (*end == '\0') {
            break;
        }
        at = end + 1;
        is_fine = is_fine && count < 3;
    }
    if (!is_fine || count == 2) {
        cli_fail_misuse(command, "%s \"%s\": write one or three numbers%s, as in %s 0.5,0.5,0.5",
                        option, text, may_be_zero ? "" : " other than 0", option);
        return false;
    }
    for (; count < 3; count++) {
        values[count] = values[0];
    }
    return true;
}

// Options of pictures that there are none for would be left out without a word.
static bool check_alone(const cli_command *command, const cli_image_settings *s) {
    const char *given = s->resize != NULL  ? "--resize"
                        : s->crop != NULL  ? "--crop"
                        : s->mean != NULL  ? "--mean"
                        : s->std != NULL   ? "--std"
                        : s->scale != NULL ? "--scale"
                        : s->layout != 0   ? "--layout"
                        : s->order != 0    ? "--channels"
                        : s->is_upright    ? "--upright"
                                           : NULL;
    if (given != NULL && s->images.count == 0) {
        cli_fail_misuse(command, "%s is for pictures: --image NAME=FILE says which", given);
        return false;
    }
    return true;
}

bool cli_image_options_read(const cli_command *command, const cli_image_settings *settings,
                            cli_image_options *out_options) {
    double scale = 0.0;
    *out_options = (cli_image_options){
        .std = {1.0, 1.0, 1.0},
        .scale = 1.0 / 255.0,
        .layout = settings->layout,
        .order = settings->order,
        .is_upright = settings->is_upright,
        .has_values = settings->mean != NULL || settings->std != NULL || settings->scale != NULL,
    };
    if (!check_alone(command, settings) ||
        !read_size(command, "--resize", settings->resize, &out_options->resize) ||
        !read_size(command, "--crop", settings->crop, &out_options->crop) ||
        (settings->mean != NULL &&
         !read_three(command, "--mean", settings->mean, true, out_options->mean)) ||
        (settings->std != NULL &&
         !read_three(command, "--std", settings->std, false, out_options->std))) {
        return false;
    }
    if (settings->scale == NULL) {
        return true;
    }
    char *end = NULL;
    scale = strtod(settings->scale, &end);
    const char *slash = *end == '/' ? end + 1 : NULL;  // "1/255"
    if (slash != NULL) {
        scale /= strtod(slash, &end);
    }
    if (end == settings->scale || end == slash || *end != '\0' || !isfinite(scale) ||
        scale == 0.0) {
        cli_fail_misuse(command, "--scale \"%s\": write a number other than 0, or 1/255",
                        settings->scale);
        return false;
    }
    out_options->scale = scale;
    return true;
}

// ---- what the input takes -----------------------------------------------------------------------

typedef struct image_plan {
    const char *file;
    const rondo_port *port;
    const cli_image_options *options;
    bool is_last;     // channels are the last axis
    size_t channels;  // 1 or 3
    int64_t width;    // of the input; -1: open
    int64_t height;
    bool is_bgr;
    bool is_byte;             // values as they are
    const char *values_from;  // whose mean and std these are, in words
    double mean[3];
    double std[3];
    double scale;
} image_plan;

static bool is_channels(int64_t extent) {
    return extent == 1 || extent == 3;
}

bool cli_image_fits(const rondo_port *port) {
    const int32_t first = port->rank - 3;
    return (cli_is_real(port->dtype) || port->dtype == RONDO_DTYPE_U8) &&
           (first == 0 || first == 1) &&
           (is_channels(port->extent[first]) || is_channels(port->extent[first + 2])) &&
           (first == 0 || port->extent[0] < 0 || port->extent[0] == 1);
}

RONDO_PRINTF(2, 3)
static bool fail_input(const image_plan *p, const char *format, ...) {
    char why[256];
    char takes[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    cli_print_error("%s: input \"%s\" takes %s: %s", p->file, p->port->name,
                    cli_format_port(p->port, takes, sizeof takes), why);
    return false;
}

static bool find_axes(image_plan *p) {
    const rondo_port *port = p->port;
    const int32_t first = port->rank - 3;
    if (!cli_is_real(port->dtype) && port->dtype != RONDO_DTYPE_U8) {
        return fail_input(p, "a picture is for inputs of u8 or of reals");
    }
    if (first != 0 && first != 1) {
        return fail_input(p, "a picture is for inputs of 3 or 4 axes; --input gives other values");
    }
    const int64_t front = port->extent[first];
    const int64_t back = port->extent[first + 2];
    const bool may_lead = front < 0 || is_channels(front);
    const bool may_trail = back < 0 || is_channels(back);
    const int wanted = p->options->layout;
    p->is_last = wanted == 2 || (wanted == 0 && !is_channels(front) && is_channels(back));
    if (p->is_last ? !may_trail : !may_lead) {
        return fail_input(p, "a picture has 1 or 3 channels%s",
                          wanted != 0 ? "; --layout says where" : "");
    }
    if (first == 1 && port->extent[0] > 1) {
        return fail_input(
            p, "one picture is not %" PRId64 " of them; a model with an open first axis takes one",
            port->extent[0]);
    }
    const int64_t channels = p->is_last ? back : front;
    p->channels = channels == 1 ? 1 : 3;
    p->height = port->extent[first + (p->is_last ? 0 : 1)];
    p->width = port->extent[first + (p->is_last ? 1 : 2)];
    p->is_byte = port->dtype == RONDO_DTYPE_U8;
    return true;
}

static void set_values(image_plan *p, double scale, double mean, const char *from) {
    p->values_from = from;
    p->scale = scale;
    for (size_t c = 0; c < 3; c++) {
        p->mean[c] = mean;
        p->std[c] = 1.0;
    }
}

// Keys and values are those of ONNX's MetadataProps.
static bool take_metadata(const rondo_program *program, image_plan *p) {
    static const char from[] = "as the model's metadata says";
    const char *range = rondo_program_get_metadata(program, "Image.NominalPixelRange");
    const char *format = rondo_program_get_metadata(program, "Image.BitmapPixelFormat");
    p->is_bgr = format != NULL && strncmp(format, "Bgr", 3) == 0;
    if (range == NULL) {
        return false;
    }
    if (strcmp(range, "NominalRange_0_255") == 0) {
        set_values(p, 1.0, 0.0, from);
    } else if (strcmp(range, "Normalized_0_1") == 0) {
        set_values(p, 1.0 / 255.0, 0.0, from);
    } else if (strcmp(range, "Normalized_1_1") == 0) {
        set_values(p, 2.0 / 255.0, 1.0, from);
    } else if (strcmp(range, "NominalRange_16_235") == 0) {
        set_values(p, 219.0 / 255.0, -16.0, from);
    } else {
        return false;
    }
    return true;
}

static bool find_values(const rondo_program *program, image_plan *p) {
    static const double means[3] = {0.485, 0.456, 0.406};
    static const double deviations[3] = {0.229, 0.224, 0.225};
    const cli_image_options *options = p->options;
    const bool is_told = take_metadata(program, p);
    p->is_bgr = options->order != 0 ? options->order == 2 : p->is_bgr;
    if (p->is_byte && options->has_values) {
        return fail_input(p,
                          "values of u8 are given as they are, without --mean, --std or --scale");
    }
    if (options->has_values) {
        p->values_from = "as the command line says";
        p->scale = options->scale;
        memcpy(p->mean, options->mean, sizeof p->mean);
        memcpy(p->std, options->std, sizeof p->std);
    } else if (!is_told && p->channels == 3) {
        p->values_from = "ImageNet's convention (--mean, --std, --scale say otherwise)";
        p->scale = 1.0 / 255.0;
        memcpy(p->mean, means, sizeof means);
        memcpy(p->std, deviations, sizeof deviations);
    } else if (!is_told) {
        set_values(p, 1.0 / 255.0, 0.0, "the convention for grey");
    }
    return true;
}

// ---- size ---------------------------------------------------------------------------------------

// As torchvision's Resize: the other side is cut to a whole number.
static cli_image_size scale_short(const cli_image *image, uint64_t side) {
    const bool is_wide = image->width >= image->height;
    const uint64_t shorter = is_wide ? image->height : image->width;
    const uint64_t longer = is_wide ? image->width : image->height;
    const uint64_t other = side * longer / shorter;
    return (cli_image_size){CLI_SIZE_BOTH, is_wide ? other : side, is_wide ? side : other};
}

// What is cut out; NONE: nothing.
static cli_image_size choose_crop(const image_plan *p) {
    const cli_image_options *options = p->options;
    const bool is_known = p->width >= 0 && p->height >= 0;
    if (options->crop.kind != CLI_SIZE_DEFAULT) {
        return options->crop;
    }
    if (!is_known && options->resize.kind == CLI_SIZE_BOTH) {
        return (cli_image_size){.kind = CLI_SIZE_NONE};
    }
    return (cli_image_size){CLI_SIZE_BOTH,
                            p->width >= 0 ? (uint64_t)p->width : (uint64_t)SIZE_DEFAULT,
                            p->height >= 0 ? (uint64_t)p->height : (uint64_t)SIZE_DEFAULT};
}

// The shorter side that leaves an eighth of what is cut out around it: 256 for 224.
static uint64_t choose_short(const cli_image *image, const cli_image_size *crop) {
    const double by_width = (double)crop->width * 8.0 / 7.0 / (double)image->width;
    const double by_height = (double)crop->height * 8.0 / 7.0 / (double)image->height;
    const double shorter = (double)(image->width < image->height ? image->width : image->height);
    return (uint64_t)llround(fmax(by_width, by_height) * shorter);
}

// Both extents of the picture before it is cut.
static cli_image_size choose_resize(const image_plan *p, const cli_image *image,
                                    const cli_image_size *crop) {
    const cli_image_size *wanted = &p->options->resize;
    const cli_image_size as_it_is = {CLI_SIZE_BOTH, image->width, image->height};
    if (wanted->kind == CLI_SIZE_BOTH) {
        return *wanted;
    }
    if (wanted->kind == CLI_SIZE_SHORT) {
        return scale_short(image, wanted->width);
    }
    if (wanted->kind == CLI_SIZE_NONE) {
        return as_it_is;
    }
    if (crop->kind == CLI_SIZE_NONE) {
        return p->width > 0 && p->height > 0
                   ? (cli_image_size){CLI_SIZE_BOTH, (uint64_t)p->width, (uint64_t)p->height}
                   : as_it_is;
    }
    const bool is_there = image->width == crop->width && image->height == crop->height;
    return is_there ? as_it_is : scale_short(image, choose_short(image, crop));
}

static bool bring_to_size(const image_plan *p, cli_image *image, char *told, size_t told_bytes) {
    const bool is_turned = p->options->is_upright;
    char turned[64] = "";
    if (image->orientation > 1) {
        snprintf(turned, sizeof turned, ", EXIF orientation %d %s", image->orientation,
                 is_turned ? "made upright" : "left alone (--upright)");
    }
    if (is_turned && !cli_image_turn_upright(image)) {
        return false;
    }
    const cli_image_size crop = choose_crop(p);
    const cli_image_size size = choose_resize(p, image, &crop);
    const size_t width = image->width;
    const size_t height = image->height;
    if (crop.kind != CLI_SIZE_NONE && (crop.width > size.width || crop.height > size.height)) {
        cli_print_error("%s: %" PRIu64 " x %" PRIu64 " pixels cannot be cut out of %" PRIu64
                        " x %" PRIu64 "; a larger --resize, or a smaller --crop",
                        p->file, crop.width, crop.height, size.width, size.height);
        return false;
    }
    if (!cli_image_resize(image, size.width, size.height)) {
        return false;
    }
    if (crop.kind != CLI_SIZE_NONE) {
        cli_image_crop(image, crop.width, crop.height);
    }
    char resized[48] = "";
    char cut[48] = "";
    if (size.width != width || size.height != height) {
        snprintf(resized, sizeof resized, ", to %" PRIu64 "x%" PRIu64, size.width, size.height);
    }
    if (image->width != size.width || image->height != size.height) {
        snprintf(cut, sizeof cut, ", middle %zux%zu", image->width, image->height);
    }
    snprintf(told, told_bytes, "%zux%zu%s%s%s", width, height, turned, resized, cut);
    return true;
}

// ---- values -------------------------------------------------------------------------------------

static void store(rondo_tensor *tensor, size_t index, double value) {
    const float single = (float)value;
    uint32_t bits;
    switch (tensor->dtype) {
        case RONDO_DTYPE_U8:
            ((uint8_t *)tensor->data)[index] = (uint8_t)value;
            break;
        case RONDO_DTYPE_F64:
            ((double *)tensor->data)[index] = value;
            break;
        case RONDO_DTYPE_F16:
            ((uint16_t *)tensor->data)[index] = rondo_f16_from_float(single);
            break;
        case RONDO_DTYPE_BF16:  // to nearest even; there is no NaN among values of pictures
            memcpy(&bits, &single, sizeof bits);
            ((uint16_t *)tensor->data)[index] =
                (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
            break;
        default:
            ((float *)tensor->data)[index] = single;
    }
}

// The channel of a pixel: for one channel its luma, by the weights of ITU-R BT.601.
static double get_value(const image_plan *p, const uint8_t *pixel, size_t channel) {
    if (p->channels == 1) {
        return (double)((pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u) >> 16);
    }
    return (double)pixel[p->is_bgr ? 2 - channel : channel];
}

static bool make_tensor(const image_plan *p, const cli_image *image, rondo_tensor *out_tensor) {
    const size_t pixel_count = image->width * image->height;
    const int32_t first = p->port->rank - 3;
    rondo_shape shape = {.rank = p->port->rank, .extent = {1}};
    shape.extent[first + (p->is_last ? 2 : 0)] = (int64_t)p->channels;
    shape.extent[first + (p->is_last ? 0 : 1)] = (int64_t)image->height;
    shape.extent[first + (p->is_last ? 1 : 2)] = (int64_t)image->width;
    if (rondo_tensor_init(p->port->dtype, &shape, out_tensor) != RONDO_STATUS_OK) {
        cli_fail_about(p->file, "");
        return false;
    }
    for (size_t i = 0; i < pixel_count; i++) {
        for (size_t c = 0; c < p->channels; c++) {
            // Mean and deviation are those of the colour that is stored there.
            const size_t colour = p->is_bgr ? 2 - c : c;
            double value = get_value(p, image->pixels + i * CLI_IMAGE_CHANNELS, c);
            if (!p->is_byte) {
                value = (value * p->scale - p->mean[colour]) / p->std[colour];
            }
            store(out_tensor, p->is_last ? i * p->channels + c : c * pixel_count + i, value);
        }
    }
    return true;
}

static void tell(const image_plan *p, const char *size) {
    char values[300] = "values as they are";
    const char *order = p->channels == 1 ? "grey" : p->is_bgr ? "BGR" : "RGB";
    if (!p->is_byte && p->channels == 3) {
        snprintf(values, sizeof values, "(value * %.6g - mean %g,%g,%g) / std %g,%g,%g, %s",
                 p->scale, p->mean[0], p->mean[1], p->mean[2], p->std[0], p->std[1], p->std[2],
                 p->values_from);
    } else if (!p->is_byte) {
        snprintf(values, sizeof values, "(value * %.6g - mean %g) / std %g, %s", p->scale,
                 p->mean[0], p->std[0], p->values_from);
    }
    cli_say(CLI_NORMAL, "input %s: %s, %s, %s, %s, %s", p->port->name, p->file, size, order,
            p->is_last ? "NHWC" : "NCHW", values);
}

bool cli_image_load(const rondo_program *program, const rondo_port *port, const char *file,
                    const cli_image_options *options, bool is_told, rondo_tensor *out_tensor) {
    image_plan plan = {.file = file, .port = port, .options = options};
    cli_image image;
    char size[256];
    memset(out_tensor, 0, sizeof *out_tensor);
    if (!find_axes(&plan) || !find_values(program, &plan) || !cli_image_read(file, &image)) {
        return false;
    }
    const bool is_made =
        bring_to_size(&plan, &image, size, sizeof size) && make_tensor(&plan, &image, out_tensor);
    cli_image_free(&image);
    if (is_made && is_told) {
        tell(&plan, size);
    }
    return is_made;
}
