# SPDX-License-Identifier: Apache-2.0

"""Small networks with the structure of larger ones that stood out: random weights, no download."""
import io

import numpy as np
import onnx


def write(torch, module, image):
    """(ONNX bytes, feeds); by the older exporter, which takes all of these."""
    module.eval()
    target = io.BytesIO()
    torch.onnx.export(module, (image,), target, dynamo=False, opset_version=17)
    data = target.getvalue()
    return data, {onnx.load_from_string(data).graph.input[0].name: np.asarray(image)}


def make_decoder(torch, widths):
    """As the decoder of a latent diffusion's autoencoder: residual blocks, attention, upsampling."""
    nn = torch.nn

    class Residual(nn.Module):
        def __init__(self, before, after):
            super().__init__()
            self.body = nn.Sequential(nn.GroupNorm(8, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1),
                                      nn.GroupNorm(8, after), nn.SiLU(), nn.Conv2d(after, after, 3, padding=1))
            self.beside = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

        def forward(self, x):
            return self.beside(x) + self.body(x)

    class Attend(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.GroupNorm(8, width)
            self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

        def forward(self, x):
            rows = self.norm(x).flatten(2).transpose(1, 2)
            q, k, v = (part(rows).unsqueeze(1) for part in self.parts[:3])
            y = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
            return x + self.parts[3](y.squeeze(1)).transpose(1, 2).reshape(x.shape)

    first, last = widths[0], widths[-1]
    layers = [nn.Conv2d(4, first, 3, padding=1), Residual(first, first), Attend(first), Residual(first, first)]
    for before, after in zip((first,) + widths, widths):
        layers += [Residual(before, after), Residual(after, after)]
        if after != last:
            layers += [nn.Upsample(scale_factor=2), nn.Conv2d(after, after, 3, padding=1)]
    return nn.Sequential(*layers, nn.GroupNorm(8, last), nn.SiLU(), nn.Conv2d(last, 3, 3, padding=1))


def make_detector(torch, torchvision):
    """Faster R-CNN with scores that differ, so that ties decide nothing."""
    network = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=21, rpn_post_nms_top_n_test=100, box_score_thresh=0.06)
    for part in network.modules():
        if isinstance(part, (torch.nn.Conv2d, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
    for head in (network.rpn.head.bbox_pred, network.roi_heads.box_predictor.bbox_pred):
        head.weight.data.mul_(0.1)

    class Detect(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, x):
            found = self.network([x[0]])[0]
            order = (found["boxes"] @ torch.tensor([1.0, 1.4, 0.7, 2.1]).to(x)).argsort()  # scores differ in last bits
            return found["boxes"][order], found["scores"][order], found["labels"][order]
    return Detect()


def export_networks():
    import torch
    import torchvision
    import transformers as hf
    from catalog import first_of
    torch.manual_seed(3)
    pools = hf.PoolFormerConfig(hidden_sizes=[32, 64, 160, 256], depths=[1, 1, 2, 1])
    windows = dict(image_size=256, patch_size=16, window_size=7, mlp_dim=768, hidden_size=192, output_channels=64)
    sam = hf.SamVisionConfig(num_hidden_layers=4, num_attention_heads=6, global_attn_indexes=[3], **windows)
    yield "poolformer", *write(torch, first_of(torch, hf.PoolFormerModel(pools)), torch.randn(1, 3, 224, 224))
    small = hf.PoolFormerConfig(hidden_sizes=[24, 32, 48, 64], depths=[1, 1, 1, 1])
    yield "poolformer_small", *write(torch, first_of(torch, hf.PoolFormerModel(small)), torch.randn(1, 3, 64, 64))
    yield "vae_decoder", *write(torch, make_decoder(torch, (64, 32, 16)), torch.randn(1, 4, 8, 8))
    yield "vae_decoder_wide", *write(torch, make_decoder(torch, (128, 64, 32)), torch.randn(1, 4, 16, 16))
    yield "sam_vision", *write(torch, first_of(torch, hf.SamVisionModel(sam), "pixel_values"),
                               torch.randn(1, 3, 256, 256))
    detector, image = make_detector(torch, torchvision), torch.rand(1, 3, 224, 320)
    data, feeds = write(torch, detector, image)
    with torch.no_grad():
        found = detector.double()(image.double())
    yield "faster_rcnn", data, feeds, [value.numpy().astype(value.numpy().dtype.str.replace("f8", "f4")) for value in found]
