// image_file.h — pixels from PNG, JPEG and PPM files.
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

// "PNG", "JPEG", "PPM"; NULL for bytes that begin as none of them.
const char *cli_image_find_kind(const uint8_t *bytes, size_t count);
