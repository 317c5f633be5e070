// program/backward/backward.c — the order of the passes.
// SPDX-License-Identifier: Apache-2.0
#include "program/backward/backward.h"

#include "program/place_mark.h"

rondo_status rondo__program_name_gradients(rondo_program *program,
                                           const rondo__backward_options *options) {
    const struct {
        rondo_status (*run)(rondo_program *program);
        bool is_wanted;
    } passes[] = {
        {rondo__pass_norm_gradient, true},
        {rondo__pass_conv_weights, options->names_conv_weights},
        {rondo__pass_unfold, !options->names_conv_weights},
        {rondo__pass_loss_gradient, true},
        {rondo__pass_conv_back, options->names_conv_back},
        {rondo__pass_pool_gradient, true},
        {rondo__pass_attention_gradient, options->names_attention},
    };
    rondo_status status = RONDO_STATUS_OK;
    rondo__program_hide_placed(program);
    for (size_t i = 0; i < sizeof passes / sizeof *passes && status == RONDO_STATUS_OK; ++i) {
        status = passes[i].is_wanted ? passes[i].run(program) : status;
    }
    rondo__program_show_placed(program);
    return status;
}
