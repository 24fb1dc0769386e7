"""What the quick start ends with: the post-processing of a detection model and a spectrogram, each with an answer that is known."""

import math
import sys

import torch
import torchaudio
import torchvision
from torchvision.ops import batched_nms, clip_boxes_to_image

print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, torchaudio {torchaudio.__version__}")

# What a model finds in a picture of 100 by 100: box, score and class. Of boxes of one class that cover each other by more than half, the best stays.
boxes = torch.tensor([[10, 10, 50, 50], [12, 12, 52, 52], [60, 60, 95, 120], [10, 10, 50, 50], [62, 61, 96, 110], [0, 70, 20, 90]], dtype=torch.float32)
scores = torch.tensor([0.90, 0.80, 0.70, 0.60, 0.75, 0.05])
classes = torch.tensor([0, 0, 1, 1, 1, 0])
sure = torch.nonzero(scores > 0.1).flatten()
kept = sure[batched_nms(clip_boxes_to_image(boxes[sure], (100, 100)), scores[sure], classes[sure], 0.5)].tolist()
print(f"detection     {len(boxes)} boxes, kept {kept}")

# A second of 1000 Hz at 16 kHz: the strongest of 201 frequencies of 40 Hz each is the 25th.
tone = torch.sin(2 * math.pi * 1000 * torch.arange(16000) / 16000)
spectrogram = torchaudio.transforms.Spectrogram(n_fft=400)(tone)
peak = int(spectrogram.mean(1).argmax()) * 40
print(f"spectrogram   {spectrogram.shape[0]} x {spectrogram.shape[1]}, strongest at {peak} Hz")

if kept != [0, 4, 3] or peak != 1000:
    sys.exit("this is wrong: boxes 0, 4 and 3 must be kept, and the tone has 1000 Hz")
