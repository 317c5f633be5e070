// image_resize.h — images of another size, and parts of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image_decoding.h"

// Makes *image that large: bilinear, and over as many pixels as one of the result covers where it
// becomes smaller (antialiasing), as Pillow's resize does with BILINEAR; first along rows, then
// along columns, rounded to 8 bits after each. On failure prints why.
//
// width, height   1 to CLI_IMAGE_PIXELS_MAX, and so their product.
bool cli_image_resize(cli_image *image, size_t width, size_t height);

// Leaves the middle of *image, which is at least that large; what cannot be halved is cut at the
// right and the bottom (as torchvision's CenterCrop rounds: to the even one).
void cli_image_crop(cli_image *image, size_t width, size_t height);
