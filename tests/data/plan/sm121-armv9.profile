variant: pytorch-python313-cuda12_9-sm121-armv9
release: 2.9.1
