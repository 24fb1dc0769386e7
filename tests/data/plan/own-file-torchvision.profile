# the same file for torchvision: PyTorch's toggles are not its own
package: torchvision
python: 3.13
cuda: 12.8
profile: own.yaml
release: 2.9.1
