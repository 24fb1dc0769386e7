variant: pytorch-python313-cpu-armv9
release: 2.11.0
