// program/backward/backward.c — the order of the passes.
// SPDX-License-Identifier: Apache-2.0
#include "program/backward/backward.h"

#include "program/place_mark.h"

rondo_status rondo__program_name_gradients(rondo_program *program, bool becomes_half) {
    static rondo_status (*const passes[])(rondo_program *) = {
        rondo__pass_norm_gradient, rondo__pass_conv_weights,  rondo__pass_loss_gradient,
        rondo__pass_conv_back,     rondo__pass_pool_gradient, rondo__pass_attention_gradient};
    rondo_status status = RONDO_STATUS_OK;
    rondo__program_hide_placed(program);
    for (size_t i = 0; i < sizeof passes / sizeof *passes && status == RONDO_STATUS_OK; ++i) {
        const bool is_for_half =
            passes[i] == rondo__pass_attention_gradient || passes[i] == rondo__pass_conv_weights;
        if (!is_for_half || becomes_half) {
            status = passes[i](program);
        }
    }
    rondo__program_show_placed(program);
    return status;
}
