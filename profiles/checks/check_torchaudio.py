"""Does this torchaudio work with the torch it was built against?"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_common import attempt, check, close, done, expected, inside, is_version  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torchaudio  # noqa: E402
from torchaudio import functional as F  # noqa: E402

want = expected()
rng = np.random.default_rng(3)

check("installed", *inside(torchaudio, sys.prefix))
check("version", torchaudio.__version__ == want["version"], torchaudio.__version__)
check("torch", *is_version(torch, want))


def lfilter():
    x = rng.uniform(-0.2, 0.2, 300)
    b, a = [0.3, 0.2, 0.1], [1.0, -0.4, 0.2]
    ref = np.zeros_like(x)
    for n in range(len(x)):
        ref[n] = sum(b[k] * x[n - k] for k in range(3) if n >= k) - sum(a[k] * ref[n - k] for k in range(1, 3) if n >= k)
    got = F.lfilter(torch.tensor(x), torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64), clamp=False)
    return close(got, ref, 1e-12)


def forced_align():
    # Three frames a token, probability near one on the right path: the alignment is known.
    path = [1, 1, 0, 2, 2, 0, 3, 3]
    logp = torch.full((1, len(path), 4), -10.0)
    for t, token in enumerate(path):
        logp[0, t, token] = -0.01
    got, _ = F.forced_align(logp, torch.tensor([[1, 2, 3]], dtype=torch.int32), blank=0)
    return got[0].tolist() == path, got[0].tolist()


def rnnt():
    logits = torch.zeros(1, 2, 2, 3, requires_grad=True)
    loss = F.rnnt_loss(logits, torch.tensor([[1]], dtype=torch.int32), torch.tensor([2], dtype=torch.int32), torch.tensor([1], dtype=torch.int32), blank=0)
    loss.backward()
    # Uniform logits: two paths of three emissions, each 1/3.
    return close(loss.detach(), -np.log(2 / 27), 1e-5)


def resample():
    t = np.arange(1600) / 16000
    x = np.sin(2 * np.pi * 440 * t)
    got = F.resample(torch.tensor(x), 16000, 8000).numpy()
    ref = np.sin(2 * np.pi * 440 * np.arange(800) / 8000)
    error = float(np.max(np.abs(got[50:-50] - ref[50:-50])))
    return error < 0.01, f"largest difference {error:.4f}"


def spectrogram():
    x = rng.standard_normal(1024)
    got = torchaudio.transforms.Spectrogram(n_fft=256, hop_length=128, center=False)(torch.tensor(x))
    window = torch.hann_window(256, dtype=torch.float64).numpy()
    ref = np.stack([np.abs(np.fft.rfft(x[i : i + 256] * window)) ** 2 for i in range(0, 769, 128)], 1)
    return close(got, ref, 1e-5)


attempt("lfilter", lfilter)
# These two have no Python fallback: they run only when the C++ extension was built and loads.
attempt("forced_align", forced_align)
attempt("rnnt_loss", rnnt)
attempt("resample", resample)
attempt("spectrogram", spectrogram)
done()
