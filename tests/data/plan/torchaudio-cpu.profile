variant: torchaudio-python313-cpu-avx2
release: 2.9.1
torch: root
