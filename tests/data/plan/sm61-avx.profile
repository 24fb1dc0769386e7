# an old GPU with an old processor
variant: pytorch-python313-cuda12_8-sm61-avx
release: 2.9.1
