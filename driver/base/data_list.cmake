# Writes DIR/sha256sums: the digest of each data file below DIR, as sha256sum has it. 'ptbuild doctor' compares.
#
#   cmake -DDIR=PREFIX/share/ptbuild -P data_list.cmake
file(REMOVE ${DIR}/sha256sums)
file(GLOB_RECURSE files RELATIVE ${DIR} ${DIR}/*)
# An administrator may change the list of archives. Python leaves its own files beside its sources.
list(FILTER files EXCLUDE REGEX "^archives$|__pycache__/")
list(SORT files)
set(text "")
foreach(file IN LISTS files)
  file(SHA256 ${DIR}/${file} digest)
  string(APPEND text "${digest}  ${file}\n")
endforeach()
file(WRITE ${DIR}/sha256sums "${text}")
