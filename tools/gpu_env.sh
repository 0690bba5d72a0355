# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# For scripts that run programs on a GPU: which ones, and with which libraries. To be sourced in the tree's root.
unset PARTITA_CUDA_MODULE # a stand-in is no device
PATH=$PATH:/usr/local/cuda/bin

# Built here, or elsewhere and brought along (bench/gpu.sh pack).
programs=build
[ -e build/build.ninja ] || [ ! -d build/gpu-pack ] || programs=build/gpu-pack

# cuFFT is where the toolkit is, or where PyTorch brought it.
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cufft=$(find /usr/local/cuda*/lib64/ /usr/local/cuda*/targets/*/lib/ "$packages/nvidia" -name 'libcufft.so.1[12]' 2>/dev/null | head -n 1)
libraries=$PWD/$programs/carried${cufft:+:$(dirname "$cufft")}

# with_libraries COMMAND...: for our programs alone. PyTorch brings libraries of its own, which others would replace.
with_libraries() {
    LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

# The line of the first CUDA device, or of what there should be for there to be one. (The program also looks for audio
# devices and fails if there are none.)
device_line() {
    with_libraries "$programs/apps/partita" devices 2>/dev/null | grep '^cuda' | head -n 1 || true
}
