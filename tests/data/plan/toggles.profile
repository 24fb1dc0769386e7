variant: pytorch-python313-cpu-avx2
release: 2.9.1
set: USE_FBGEMM=0
set: USE_NUMA=yes
without: distributed
blas: mkl
