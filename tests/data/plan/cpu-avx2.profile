variant: pytorch-python313-cpu-avx2
release: 2.9.1
