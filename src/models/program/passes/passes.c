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

static rondo_status optimise(rondo_program *program, const rondo__pass_options *options) {
    if (options->fuse_elementwise) {  // before layouts, which leave what it makes alone
        RETURN_IF_ERROR(rondo__pass_update(program));
    }
    if (options->fuse_matmul) {
        RETURN_IF_ERROR(rondo__pass_einsum(program));
    }
    RETURN_IF_ERROR(rondo__pass_narrow_loss(program));
    RETURN_IF_ERROR(rondo__pass_moves(program));
    RETURN_IF_ERROR(rondo__pass_rms_norm(program));
    RETURN_IF_ERROR(rondo__pass_rotary(program));
    if (options->fuse_elementwise) {
        RETURN_IF_ERROR(rondo__pass_silu(program));
        RETURN_IF_ERROR(rondo__pass_gate(program));
    }
    if (options->fuse_attention) {
        RETURN_IF_ERROR(rondo__pass_rotate(program));
    }
    // Products and convolutions first: they take element-wise neighbours that would otherwise form
    // chains.
    if (options->split_transposed) {
        RETURN_IF_ERROR(rondo__pass_transposed(program));
    }
    if (options->fuse_convolution) {
        RETURN_IF_ERROR(rondo__pass_convolution(program));
    }
    if (options->fuse_matmul) {
        RETURN_IF_ERROR(rondo__pass_matmul(program));
    }
    if (options->fuse_bytes) {
        RETURN_IF_ERROR(rondo__pass_byte_product(program));
    }
    if (options->fuse_attention) {
        RETURN_IF_ERROR(rondo__pass_attention(program));
    }
    if (options->fuse_group_norm) {  // before layouts, which then go through
        RETURN_IF_ERROR(rondo__pass_group_norm(program));
    }
    if (options->fuse_elementwise) {  // likewise
        RETURN_IF_ERROR(rondo__pass_scale_shift(program));
    }
    const uint32_t wants = (options->channels_last ? RONDO__LAYOUT_REALS : 0u) |
                           (options->fuse_bytes ? RONDO__LAYOUT_BYTES : 0u);
    if (options->channels_last || rondo__layout_is_wanted(program, wants)) {
        RETURN_IF_ERROR(rondo__pass_layout(program, wants));
        RETURN_IF_ERROR(rondo__pass_moves(program));  // some layouts were wanted as they are now
        if (options->widen_images) {
            RETURN_IF_ERROR(rondo__pass_space_to_depth(program));
        }
        if (options->add_shortcuts) {
            RETURN_IF_ERROR(rondo__pass_shortcut(program));
        }
        if (options->fuse_matmul) {
            RETURN_IF_ERROR(rondo__pass_matmul(program));  // products whose result was transposed
        }
        if (options->fuse_concat) {
            RETURN_IF_ERROR(rondo__pass_concat(program));
        }
    }
    if (options->fuse_bit_rows) {  // before chains, which would take their gates
        RETURN_IF_ERROR(rondo__pass_bits_row(program));
    }
    if (options->fuse_elementwise) {
        RETURN_IF_ERROR(rondo__pass_elementwise(program));
    }
    if (options->fuse_matmul) {
        RETURN_IF_ERROR(rondo__pass_widen(program));
    }
    if (options->append_attention) {  // of moves as they are at last
        RETURN_IF_ERROR(rondo__pass_append_attention(program));
    }
    if (options->fuse_rows) {
        RETURN_IF_ERROR(rondo__pass_row_product(program));
    }
    if (options->fuse_norm) {
        RETURN_IF_ERROR(rondo__pass_norm_product(program));  // of products as they are at last
        RETURN_IF_ERROR(rondo__pass_moments(program));
    }
    return RONDO_STATUS_OK;
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

rondo_status rondo__program_join_products(rondo_program *program) {
    rondo__program_hide_placed(program);
    const rondo_status status = rondo__pass_join(program);
    rondo__program_show_placed(program);
    return status;
}

rondo_status rondo__program_name_norms(rondo_program *program) {
    rondo__program_hide_placed(program);
    rondo_status status = rondo__pass_identity(program);  // of Casts; by now all types are known
    if (status == RONDO_STATUS_OK) {
        status = rondo__pass_rms_norm(program);
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
