package: torchaudio
python: 3.13
cuda: 12.8
profile: sm86+sm90+ptx-avx2
release: 2.9.1
