"""Does this torchvision work with the torch it was built against?"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_common import attempt, check, close, done, expected, inside, is_version  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from torchvision import io, ops  # noqa: E402

want = expected()
rng = np.random.default_rng(2)

check("installed", *inside(torchvision, sys.prefix))
check("version", torchvision.__version__ == want["version"], torchvision.__version__)
check("torch", *is_version(torch, want))
check("extension", torchvision.extension._has_ops(), "")


def iou(a, b):
    w = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    h = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    area = lambda r: (r[2] - r[0]) * (r[3] - r[1])  # noqa: E731
    return w * h / (area(a) + area(b) - w * h)


def nms():
    corner = rng.uniform(0, 50, (200, 2))
    boxes = np.hstack([corner, corner + rng.uniform(5, 30, (200, 2))])
    scores = rng.permutation(200) / 200
    keep = []
    for i in np.argsort(-scores):
        if all(iou(boxes[i], boxes[k]) <= 0.5 for k in keep):
            keep.append(int(i))
    got = ops.nms(torch.tensor(boxes), torch.tensor(scores), 0.5).tolist()
    return got == keep, f"{len(got)} boxes kept, {len(keep)} expected"


def roi_align():
    x = torch.arange(64, dtype=torch.float32).reshape(1, 1, 8, 8)
    got = ops.roi_align(x, torch.tensor([[0, 0, 0, 8, 8]], dtype=torch.float32), 2, aligned=True)
    # The mean of a plane over a box is its value in the box's middle; the border sample is clamped.
    return got.shape == (1, 1, 2, 2) and abs(float(got.mean()) - 31.5) < 0.5, got.flatten().tolist()


def deform():
    x, w = rng.standard_normal((1, 2, 6, 6)), rng.standard_normal((3, 2, 3, 3))
    x, w = torch.tensor(x), torch.tensor(w)
    got = ops.deform_conv2d(x, torch.zeros(1, 18, 4, 4, dtype=torch.float64), w)
    return close(got, torch.nn.functional.conv2d(x, w), 1e-12)


def png():
    image = torch.tensor(rng.integers(0, 256, (3, 17, 23)), dtype=torch.uint8)
    return bool((io.decode_png(io.encode_png(image)) == image).all()), "lossless round trip"


def jpeg():
    y, x = np.mgrid[0:32, 0:32]
    image = torch.tensor(np.stack([x * 4, y * 4, 128 + 0 * x]), dtype=torch.uint8)
    back = io.decode_jpeg(io.encode_jpeg(image, quality=95))
    error = int((back.int() - image.int()).abs().max())
    return back.shape == image.shape and error <= 12, f"largest difference {error} of 255"


def model():
    net = torchvision.models.resnet18(weights=None).eval()
    with torch.no_grad():
        out = net(torch.zeros(1, 3, 64, 64))
    return out.shape == (1, 1000) and bool(torch.isfinite(out).all()), str(tuple(out.shape))


attempt("nms", nms)
attempt("roi_align", roi_align)
attempt("deform_conv2d", deform)
if want.get("png", True):
    attempt("png", png)
if want.get("jpeg", True):
    attempt("jpeg", jpeg)
attempt("resnet18", model)
done()
