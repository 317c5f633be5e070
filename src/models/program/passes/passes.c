// program/passes/passes.c — the order of the passes.
// SPDX-License-Identifier: Apache-2.0
#include "program/passes/passes.h"

#include "base/error.h"
#include "program/backward/backward.h"
#include "program/edit.h"
#include "program/place_mark.h"

static rondo_status simplify(rondo_program *program) {
    RETURN_IF_ERROR(rondo__pass_identity(program));
    RETURN_IF_ERROR(rondo__pass_batch_norm(program));
    RETURN_IF_ERROR(rondo__pass_layer_scale(program));
    RETURN_IF_ERROR(rondo__pass_labels(program));
    RETURN_IF_ERROR(rondo__pass_gelu(program));
    RETURN_IF_ERROR(rondo__pass_masked_softmax(program));
    return rondo__pass_rms_norm(program);
}

typedef struct pass {
    bool is_wanted;
    rondo_status (*run)(rondo_program *program);
} pass;

static rondo_status run_wanted(rondo_program *program, const pass *passes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (passes[i].is_wanted) {
            RETURN_IF_ERROR(passes[i].run(program));
        }
    }
    return RONDO_STATUS_OK;
}

#define RUN_WANTED(program, passes) \
    run_wanted((program), (passes), sizeof(passes) / sizeof *(passes))

static rondo_status change_layouts(rondo_program *program, const rondo__pass_options *options) {
    const uint32_t wants = (options->channels_last ? RONDO__LAYOUT_REALS : 0u) |
                           (options->fuse_bytes ? RONDO__LAYOUT_BYTES : 0u);
    const pass behind[] = {
        {true, rondo__pass_moves},  // some layouts were wanted as they are now
        {options->widen_images, rondo__pass_space_to_depth},
        {options->add_shortcuts, rondo__pass_shortcut},
        {options->fuse_matmul, rondo__pass_matmul},  // products whose result was transposed
        {options->fuse_concat, rondo__pass_concat},
    };
    if (!options->channels_last && !rondo__layout_is_wanted(program, wants)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__pass_layout(program, wants));
    return RUN_WANTED(program, behind);
}

static rondo_status optimise(rondo_program *program, const rondo__pass_options *options) {
    const pass before[] = {
        {options->fuse_elementwise, rondo__pass_update},  // layouts leave what it makes alone
        {options->fuse_matmul, rondo__pass_einsum},
        {true, rondo__pass_narrow_loss},
        {true, rondo__pass_moves},
        {true, rondo__pass_rows},
        {true, rondo__pass_rms_norm},
        {true, rondo__pass_rotary},
        {options->fuse_elementwise, rondo__pass_silu},
        {options->fuse_elementwise, rondo__pass_gate},
        {options->fuse_attention, rondo__pass_rotate},
        {options->fuse_attention, rondo__pass_masks},
        // Products and convolutions first: they take element-wise neighbours that would otherwise
        // form chains.
        {options->split_transposed, rondo__pass_transposed},
        {options->fuse_convolution, rondo__pass_convolution},
        {options->turn_products, rondo__pass_turned},
        {options->fuse_matmul, rondo__pass_matmul},
        {options->fuse_bytes, rondo__pass_byte_product},
        {options->fuse_attention, rondo__pass_attention},
        {options->keep_shares, rondo__pass_shares},
        {options->fuse_group_norm, rondo__pass_group_norm},    // layouts then go through
        {options->fuse_elementwise, rondo__pass_scale_shift},  // likewise
    };
    const pass behind[] = {
        {options->end_batches, rondo__pass_batch_end},   // before chains, which take additions
        {options->fuse_few_rows, rondo__pass_bits_row},  // before chains, which take their gates
        {options->fuse_elementwise, rondo__pass_elementwise},
        {options->fuse_matmul, rondo__pass_widen},
        // Of moves and products as they are at last:
        {options->append_attention, rondo__pass_append_attention},
        {options->fuse_rows, rondo__pass_rotate_heads},
        {options->fuse_rows, rondo__pass_gate_products},
        {options->fuse_rows, rondo__pass_row_product},
        {options->fuse_few_rows, rondo__pass_few_rows},
        {options->fuse_norm, rondo__pass_norm_product},
        {options->fuse_norm, rondo__pass_moments},
        {options->lay_filters, rondo__pass_lay_filters},
    };
    RETURN_IF_ERROR(RUN_WANTED(program, before));
    RETURN_IF_ERROR(change_layouts(program, options));
    return RUN_WANTED(program, behind);
}

// Nodes with a place of their own stay as they are.
rondo_status rondo__program_simplify(rondo_program *program) {
    rondo__program_hide_placed(program);
    const rondo_status status = simplify(program);
    rondo__program_show_placed(program);
    return status;
}

bool rondo__program_has_quantised(const rondo_program *program) {
    for (size_t n = 0; n < program->node_count; ++n) {
        if (rondo__node_is(&program->nodes[n], RONDO__OP_DequantizeLinear)) {
            return true;
        }
    }
    return false;
}

rondo_status rondo__program_quantise(rondo_program *program) {
    rondo__program_hide_placed(program);
    rondo_status status = rondo__pass_qdq(program);
    if (status == RONDO_STATUS_OK) {
        status = rondo__pass_bits_product(program);
    }
    rondo__program_show_placed(program);
    return status;
}

rondo_status rondo__program_clear_denormals(rondo_program *program) {
    rondo__program_hide_placed(program);
    const rondo_status status = rondo__pass_denormals(program);
    rondo__program_show_placed(program);
    return status;
}

rondo_status rondo__program_join_products(rondo_program *program) {
    rondo__program_hide_placed(program);
    const rondo_status status = rondo__pass_join(program);
    rondo__program_show_placed(program);
    return status;
}

rondo_status rondo__program_name_norms(rondo_program *program, bool names_unit_rows) {
    rondo__program_hide_placed(program);
    rondo_status status = rondo__pass_choices(program);  // by now types and shapes are known
    if (status == RONDO_STATUS_OK) {
        status = rondo__pass_rms_norm(program);
    }
    if (status == RONDO_STATUS_OK && names_unit_rows) {
        status = rondo__pass_unit_rows(program);
    }
    rondo__program_show_placed(program);
    return status;
}

rondo_status rondo__program_optimise(rondo_program *program, const rondo__pass_options *options) {
    rondo__program_hide_placed(program);
    const rondo_status status = optimise(program, options);
    rondo__program_show_placed(program);
    return status;
}
