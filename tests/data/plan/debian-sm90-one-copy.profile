# a kernel is compiled once instead of three times: for a wheel whose work is done on the GPU
variant: pytorch-python313-cuda12_4-sm90-avx512
release: 2.6.0-debian
set: CXX_AVX2_FOUND=FALSE
set: C_AVX2_FOUND=FALSE
set: CXX_AVX512_FOUND=FALSE
set: C_AVX512_FOUND=FALSE
set: CAFFE2_COMPILER_SUPPORTS_AVX512_EXTENSIONS=OFF
