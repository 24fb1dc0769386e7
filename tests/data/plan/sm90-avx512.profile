variant: pytorch-python313-cuda12_8-sm90-avx512
release: 2.9.1
