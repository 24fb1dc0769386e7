# a user's file with toggles
package: pytorch
python: 3.13
cuda: 12.8
profile: own.yaml
release: 2.9.1
