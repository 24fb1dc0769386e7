variant: pytorch-python313-cuda13_0-sm61-avx2
release: 2.9.1
