# the file's line is named
package: pytorch
python: 3.13
profile: wrong.yaml
release: 2.9.1
