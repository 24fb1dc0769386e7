variant: pytorch-python311-cpu-avx2
release: 2.6.0-debian
