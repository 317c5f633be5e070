// image_file.h — pixels from PNG, JPEG, PPM and BMP files.
//
// PNG and JPEG need libpng and libjpeg, which a build may lack; then their files are refused with a
// word. Extents are checked before anything is allocated for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image_decoding.h"

// Reads a file, known by its first bytes. On failure prints why.
//
// Ownership: free with cli_image_free.
bool cli_image_read(const char *path, cli_image *out_image);

// The same of bytes, known by the first of them; a failure leaves a reason.
//
// Ownership: free the image with cli_image_free, also after a failure.
bool cli_image_decode(cli_image_decoding *d);

// "PNG", "JPEG", "PPM", "BMP"; NULL for bytes that begin as none of them.
const char *cli_image_find_kind(const uint8_t *bytes, size_t count);
