// backend/node_image.c — see node_image.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/node_image.h"

#include <string.h>

#include "base/memory.h"

rondo_status rondo__node_image_copy(const rondo__node_image *image, rondo__node_image *out_copy) {
    *out_copy = *image;
    out_copy->arguments = NULL;
    out_copy->parameters = NULL;
    out_copy->parameter_addresses = NULL;
    out_copy->former_arguments = NULL;
    if (image->argument_bytes > 0) {
        out_copy->arguments = rondo__malloc_aligned(image->argument_bytes, 16);
    }
    if (image->parameter_count > 0) {
        out_copy->parameters = rondo__calloc(image->parameter_count, sizeof *image->parameters);
    }
    if ((image->argument_bytes > 0 && out_copy->arguments == NULL) ||
        (image->parameter_count > 0 && out_copy->parameters == NULL)) {
        rondo__node_image_deinit(out_copy);
        return RONDO_STATUS_NO_MEMORY;
    }
    if (image->argument_bytes > 0) {
        memcpy(out_copy->arguments, image->arguments, image->argument_bytes);
    }
    if (image->parameter_count > 0) {
        memcpy(out_copy->parameters, image->parameters,
               image->parameter_count * sizeof *image->parameters);
    }
    return RONDO_STATUS_OK;
}

void rondo__node_image_deinit(rondo__node_image *image) {
    rondo__free(image->arguments);
    rondo__free(image->former_arguments);
    rondo__free(image->parameters);
    rondo__free(image->parameter_addresses);
    *image = (rondo__node_image){.index = 0};
}

rondo_status rondo__node_image_reserve_former(rondo__node_image *image) {
    if (image->argument_bytes > 0 && image->former_arguments == NULL) {
        image->former_arguments = rondo__malloc_aligned(image->argument_bytes, 16);
        return image->former_arguments != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    return RONDO_STATUS_OK;
}

void rondo__node_image_save(const rondo__node_image *image, rondo__node_image *out_former) {
    *out_former = *image;
    out_former->arguments = image->former_arguments;
    if (image->argument_bytes > 0) {
        memcpy(out_former->arguments, image->arguments, image->argument_bytes);
    }
}
