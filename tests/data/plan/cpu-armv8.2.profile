# the other spelling of armv8_2
variant: pytorch-python313-cpu-armv8.2
release: 2.9.1
