variant: torchaudio-python313-cpu-avx2
release: 2.6.0-debian
torch: root
