// image_op.h — ONNX's ImageDecoder, which the library leaves to programs that have decoders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the op known to all models that are loaded afterwards, for the formats of image_file.h.
void cli_image_register_op(void);
