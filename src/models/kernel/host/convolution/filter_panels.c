// kernel/host/convolution/filter_panels.c — see filter_panels.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/convolution/filter_panels.h"

#include <string.h>

#include "kernel/host/host_threads.h"

// What decides the form of the panels.
typedef struct panel_form {
    char kind[8];
    int64_t width, group, channels, filters, taps;  // channels and filters of a group
} panel_form;

static panel_form make_form(const rondo__simd *simd, const rondo__convolution *shape,
                            bool is_depthwise) {
    if (is_depthwise) {  // one matrix of taps by filters, in one panel
        return (panel_form){.kind = "depth",
                            .width = shape->filters,
                            .group = 1,
                            .channels = 1,
                            .filters = shape->filters,
                            .taps = shape->kernel_span};
    }
    return (panel_form){.kind = "filters",
                        .width = simd->panel_columns,
                        .group = shape->group,
                        .channels = shape->channels / shape->group,
                        .filters = shape->filters / shape->group,
                        .taps = shape->kernel_span};
}

static int64_t count_panels(const panel_form *form) {
    return (form->filters + form->width - 1) / form->width;
}

// Panel `panel` of all groups.
static void fill_panel(const panel_form *form, const float *w, int64_t panel, float *out_panels) {
    const int64_t panels = count_panels(form), k = form->taps * form->channels;
    const int64_t group = panel / panels, first = panel % panels * form->width;
    const int64_t rest = form->filters - first;
    const int64_t columns = rest < form->width ? rest : form->width;
    float *to = out_panels + panel * k * form->width;
    if (columns < form->width) {
        memset(to, 0, (size_t)(k * form->width) * sizeof(float));
    }
    for (int64_t i = 0; i < columns; ++i) {
        const float *filter = w + (group * form->filters + first + i) * k;
        for (int64_t c = 0; c < form->channels; ++c) {
            for (int64_t tap = 0; tap < form->taps; ++tap) {
                to[(tap * form->channels + c) * form->width + i] = filter[c * form->taps + tap];
            }
        }
    }
}

typedef struct filling {
    const panel_form *form;
    const float *w;
    float *panels;
} filling;

static void fill_some(void *data, int64_t first, int64_t end) {
    const filling *f = data;
    for (int64_t panel = first; panel < end; ++panel) {
        fill_panel(f->form, f->w, panel, f->panels);
    }
}

size_t rondo__filter_panels_get_bytes(const rondo__simd *simd, const rondo__convolution *shape,
                                      bool is_depthwise) {
    const panel_form form = make_form(simd, shape, is_depthwise);
    return (size_t)(form.group * count_panels(&form) * form.width * form.taps * form.channels) *
           sizeof(float);
}

void rondo__filter_panels_fill(const rondo__simd *simd, const rondo__convolution *shape,
                               bool is_depthwise, const float *w, float *out_panels) {
    const panel_form form = make_form(simd, shape, is_depthwise);
    const int64_t count = form.group * count_panels(&form);
    filling f = {&form, w, out_panels};
    const double bytes = 8.0 * (double)rondo__filter_panels_get_bytes(simd, shape, is_depthwise);
    rondo__workers_loop(count, rondo__host_get_grain(count, bytes, 0.0), fill_some, &f);
}

static rondo_status fill_constant(const rondo__weight_want *want, void *bytes) {
    const panel_form *form = want->form;
    filling f = {form, want->constant->data, bytes};
    fill_some(&f, 0, form->group * count_panels(form));
    return RONDO_STATUS_OK;
}

rondo_status rondo__filter_panels_keep(rondo__weight_list *list, const rondo__simd *simd,
                                       const rondo__convolution *shape, bool is_depthwise,
                                       const rondo_tensor *constant, const float **out_panels) {
    const panel_form form = make_form(simd, shape, is_depthwise);
    const rondo__weight_want want = {
        .constant = constant,
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = rondo__filter_panels_get_bytes(simd, shape, is_depthwise),
        .fill = fill_constant,
    };
    void *panels = NULL;
    const rondo_status status = rondo__weight_list_add(list, &want, &panels);
    *out_panels = panels;
    return status;
}
