variant: pytorch-python312-cpu-avx512bf16
release: 2.9.1
