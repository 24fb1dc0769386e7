#!/bin/sh
# nvcc by way of the compiler cache. Its key does not tell -dc from -c, but does tell -rdc=true -c, which is the same.
# Without a list of headers (-MD) it would go by what the preprocessor gives for the device, where the host's compiler
# sees another text: such a compilation is not cached.
compiler=$1 list=""
shift
for a; do
	shift
	case $a in
	-dc | --device-c) set -- "$@" -rdc=true -c ;;
	-MD | -MMD) list=1; set -- "$@" "$a" ;;
	*) set -- "$@" "$a" ;;
	esac
done
[ "$list" ] || exec "$compiler" "$@"
CCACHE_COMPILERCHECK="${identity:?}" exec "${ccache:?}" "$compiler" "$@"
