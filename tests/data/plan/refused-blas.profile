variant: pytorch-python313-cpu-armv9
release: 2.9.1
blas: mkl
