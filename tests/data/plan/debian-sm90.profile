# the toolkit of that system
variant: pytorch-python313-cuda12_4-sm90-avx2
release: 2.6.0-debian
