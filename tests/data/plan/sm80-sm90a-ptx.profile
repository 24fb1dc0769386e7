package: pytorch
python: 3.13
profile: sm80+sm90a+ptx-avx2
release: 2.9.1
