variant: torchvision-python313-cpu-avx2
release: 2.9.1
torch: sha256:0123
