variant: pytorch-python313-darwin-mps
release: 2.9.1
set: USE_METAL=1
