from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(name="proof", version="1", ext_modules=[CUDAExtension("proof", ["module.cpp", "kernels.cu"])], cmdclass={"build_ext": BuildExtension})
