variant: pytorch-python313-cuda12_4-sm110-armv9
release: 2.6.0-debian
