# no such machine: built, with a note
variant: pytorch-python313-cuda13_0-sm110-avx512
release: 2.9.1
