#!/bin/sh
# GCC with a larger heap: there is memory to spare. Not where its options go into what it makes, nor over a heap of the command's own.
compiler=$1 plain="" debug=""
shift
case ${compiler##*/} in
*clang*) plain=1 ;;
*gcc* | *g++*) ;;
*) plain=1 ;;
esac
for a; do
	case $a in
	-g0) debug= ;;
	-gno-*) ;;
	-g*) debug=1 ;;
	-frecord-gcc-switches | -flto* | *ggc-min-heapsize*) plain=1 ;;
	esac
done
[ "$plain$debug" ] || set -- --param=ggc-min-heapsize="${heap:?}" "$@"
exec "$compiler" "$@"
