# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# For scripts that run programs on a GPU: where the programs and their libraries are. Source it in
# the tree's root.
unset PARTITA_CUDA_MODULE # a stand-in is not a device
PATH=$PATH:/usr/local/cuda/bin

# Programs are built here, or packed on another machine (bench/gpu.sh pack).
programs=build
[ -e build/build.ninja ] || [ ! -d build/gpu-pack ] || programs=build/gpu-pack

# cuFFT is in the toolkit, or in the packages of PyTorch.
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cufft=$(find /usr/local/cuda*/lib64/ /usr/local/cuda*/targets/*/lib/ "$packages/nvidia" -name 'libcufft.so.1[12]' 2>/dev/null | head -n 1)
libraries=$PWD/$programs/carried${cufft:+:$(dirname "$cufft")}

# with_libraries COMMAND...: for our programs only. PyTorch has libraries of its own, which these
# would replace.
with_libraries() {
    LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

# Prints the line of the first CUDA device, or the line that says what is missing. bench_gpu does not
# start without cuFFT, `partita` is not built without libsndfile.
device_line() {
    {
        with_libraries "$programs/bench/bench_gpu" --device ||
            with_libraries "$programs/apps/partita" devices
    } 2>/dev/null | grep '^cuda' | head -n 1 || true
}
