// image_orientation.h — how a camera was held, as EXIF notes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image_decoding.h"

// The orientation in a JPEG file's APP1 segment, 1 to 8; 0 where there is none.
int cli_image_find_orientation(const uint8_t *segment, size_t count);

// Turns and mirrors *image so that what its orientation calls the top is there, as Pillow's
// exif_transpose does; its orientation is 1 then. On failure prints why.
bool cli_image_turn_upright(cli_image *image);
