# the default toolkit has no sm103
package: pytorch
python: 3.13
profile: sm103-avx512
release: 2.9.1
