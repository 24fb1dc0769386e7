# AVX alone: FBGEMM, oneDNN, NNPACK off, dispatch kernels hidden
variant: pytorch-python313-cpu-avx
release: 2.9.1
