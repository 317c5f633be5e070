"""The networks that bench/peers/gpu_networks.py runs: with random weights, and their inputs.

make(NAME) gives both. NAME_f16 is the same network as it is exported in half precision, NAME_q4 that with the
weights of its products in 4 bits, which only the exported file has.
"""


def image(count=1, size=224):
    import torch
    return (torch.randn(count, 3, size, size),)


def make_unet():
    import torch
    from torch import nn

    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.InstanceNorm2d(outputs, affine=True),
                             nn.LeakyReLU(0.1), nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs),
                             nn.SiLU())

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([block(3, 16), block(16, 32), block(32, 64)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 4, 2, 1)])
            self.join = nn.ModuleList([block(64, 32), block(32, 16)])
            self.pool, self.last = nn.AvgPool2d(2), nn.Conv2d(16, 2, 1)

        def forward(self, x):
            kept = [self.down[0](x)]
            kept.append(self.down[1](self.pool(kept[0])))
            y = self.down[2](self.pool(kept[1]))
            for up, join, old in zip(self.up, self.join, reversed(kept)):
                y = join(torch.cat([up(y), old], 1))
            return nn.functional.interpolate(self.last(y), scale_factor=2, mode="bilinear", align_corners=False)

    return Unet(), image(size=128)


def make_gru():
    import torch
    from torch import nn

    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers = nn.Embedding(300, 64), nn.GRU(64, 80, 2, bidirectional=True)
            self.head = nn.Linear(160, 11)

        def forward(self, ids):
            return self.head(self.layers(self.words(ids))[0])

    return Gru(), (torch.randint(0, 300, (19, 2)),)


def make_vit():
    import torch
    from torchvision.models import VisionTransformer
    net = VisionTransformer(224, 16, 12, 3, 192, 768)
    torch.nn.init.normal_(net.heads.head.weight, std=0.02)
    return net, image()


class First:
    """Makes a module of a network and the part of its result that is wanted."""

    def __new__(cls, net, get):
        import torch

        class Wrapped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, *arguments):
                return get(self.net, *arguments)

        return Wrapped()


def make_deeplab():
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large
    net = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    return First(net, lambda net, x: net(x)["out"]), image()


def make_bert():
    import torch
    from transformers import BertConfig, BertModel
    net = BertModel(BertConfig(attn_implementation="eager"))
    ids, mask = torch.randint(0, 1000, (1, 128)), torch.ones(1, 128, dtype=torch.long)
    return First(net, lambda net, ids, mask: net(ids, attention_mask=mask)[0]), (ids, mask)


def make_gpt2():
    import argparse
    import torch
    from export_gpt2 import Gpt2
    options = argparse.Namespace(layers=12, width=768, heads=12, words=50257, tokens=128)
    return Gpt2(options), (torch.randint(0, 1000, (1, 128)),)


def make_mixer():
    """mixer_b16_224: twelve blocks of 196 tokens and 768 channels."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(768), nn.LayerNorm(768)])
            self.tokens = nn.Sequential(nn.Linear(196, 384), nn.GELU(), nn.Linear(384, 196))
            self.channels = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))

        def forward(self, x):
            x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norms[1](x))

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 768, 16, 16)
            self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(12)]), nn.LayerNorm(768)
            self.head = nn.Linear(768, 1000)

        def forward(self, x):
            return self.head(self.norm(self.blocks(self.stem(x).flatten(2).transpose(1, 2))).mean(1))

    return Mixer(), image()


def make_ssdlite():
    """All 3234 boxes of 90 classes are above the threshold: 300 of each class go through NonMaxSuppression."""
    import torch
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large
    net = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    for layers in net.head.classification_head.module_list:
        torch.nn.init.normal_(layers[-1].weight, std=0.06)
    with torch.no_grad():
        # Real statistics, so that scores differ by more than a rounding.
        net.head(list(net.backbone(torch.randn(4, 3, 320, 320)).values()))

    def detect(net, x):
        found = net([x[0]])[0]
        return found["boxes"], found["scores"], found["labels"]

    return First(net, detect), image(size=320)


def make_llama(layers=8, words=32000, past=511, tokens=1, width=2048, heads=32, groups=8, inner=8192):
    """One step of a decoder with 511 tokens behind it, or the first pass over a prompt (no past)."""
    import torch
    from torch import nn
    extent = width // heads

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            y = x.float()
            return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight

    def rotate(x, cosine, sine):
        return x * cosine + torch.cat([-x[..., extent // 2:], x[..., :extent // 2]], -1) * sine

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
            self.norms = nn.ModuleList([Norm(), Norm()])
            self.q, self.k, self.v = (linear(width, n * extent) for n in (heads, groups, groups))
            self.o, self.gate, self.up = linear(width, width), linear(width, inner), linear(width, inner)
            self.down = linear(inner, width)

        def attend(self, q, k, v):
            if FUSED and tokens > 1:
                return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            shape = (1, groups, heads // groups, k.shape[2], extent)
            k, v = (x.unsqueeze(2).expand(shape).reshape(1, heads, -1, extent) for x in (k, v))
            weights = q @ k.transpose(2, 3) / extent ** 0.5
            if tokens > 1:
                weights = weights + torch.full((tokens, tokens), -65504.0, dtype=q.dtype, device=q.device).triu(1)
            return torch.softmax(weights, -1) @ v

        def forward(self, x, cosine, sine, *past):
            split = lambda product, count: product.view(1, tokens, count, extent).transpose(1, 2)
            y = self.norms[0](x)
            q = rotate(split(self.q(y), heads), cosine, sine)
            k, v = rotate(split(self.k(y), groups), cosine, sine), split(self.v(y), groups)
            if past:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            x = x + self.o(self.attend(q, k, v).transpose(1, 2).reshape(1, tokens, width))
            y = self.norms[1](x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), k, v

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.norm = nn.Embedding(words, width), Norm()
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.head = nn.Linear(width, words, bias=False)
            for weight in self.parameters():
                if weight.dim() == 2:
                    nn.init.normal_(weight, std=0.02)

        def forward(self, ids, cosine, sine, *past):
            x, caches = self.words(ids), []
            for i, layer in enumerate(self.layers):
                x, k, v = layer(x, cosine, sine, *past[2 * i:2 * i + 2])
                caches += [k, v]
            return (self.head(self.norm(x[:, -1:])), *caches)

    caches = [torch.randn(1, groups, past, extent) * 0.3 for _ in range(2 * layers if past else 0)]
    return Llama(), (torch.randint(0, min(words, 32000), (1, tokens)), torch.rand(1, 1, tokens, extent),
                     torch.rand(1, 1, tokens, extent), *caches)


def make_vision(name, count=1, size=224, **options):
    import torchvision
    return getattr(torchvision.models, name)(weights=None, **options), image(count, size)


FUSED = False  # a prompt's attention as PyTorch's fused op: for its own times, not for the export
NOT_COMPILED = ("ssdlite320",)  # graphs break at each class
SLOW = {"ssdlite320": 5, "regnet_y_3_2gf": 5}  # runs of the older tool, which takes a tenth of a second for each
DECODERS = ("llama_half_b", "llama_half_b_f16", "llama_half_b_q4", "llama_1b", "llama_1b_f16", "llama_1b_q4")  # steps

# What is also exported in half precision, with 4-bit weights: PyTorch's numbers are those of the network itself.
FORMS = {form: form[:form.rindex("_")] for form in ("llama_half_b_f16", "llama_half_b_q4", "llama_half_b_prompt_f16",
                                                    "llama_1b_f16", "llama_1b_q4")}

NETWORKS = {
    "unet": make_unet, "deeplab": make_deeplab, "gru": make_gru, "bert_base": make_bert, "gpt2": make_gpt2,
    "vit_tiny": make_vit,
    "densenet121": lambda: make_vision("densenet121"), "resnet50": lambda: make_vision("resnet50"),
    "convnext_tiny": lambda: make_vision("convnext_tiny"), "resnet50_b128": lambda: make_vision("resnet50", 128),
    "inception_v3": lambda: make_vision("inception_v3", size=299, aux_logits=True, init_weights=False),
    "efficientnet_b0": lambda: make_vision("efficientnet_b0"), "regnet_y_3_2gf": lambda: make_vision("regnet_y_3_2gf"),
    "mixer_b16": make_mixer, "swin_t": lambda: make_vision("swin_t"),
    "swin_v2_t": lambda: make_vision("swin_v2_t", size=256), "ssdlite320": make_ssdlite,
    "llama_half_b": make_llama, "llama_half_b_prompt": lambda: make_llama(past=0, tokens=512),
    "llama_1b": lambda: make_llama(layers=16, words=128256),
}


def make(name):
    """The network as after training, and its inputs; the same in each process."""
    import torch
    torch.manual_seed(0)
    net, inputs = NETWORKS[FORMS.get(name, name)]()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d) and name != "ssdlite320":
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    if name in FORMS:
        net, inputs = net.half(), tuple(x.half() if x.is_floating_point() else x for x in inputs)
    return net.eval(), inputs
