#!/bin/sh
# Run the multi-threaded tests (cpp/tests/threads_test.cpp) under the thread sanitizer.
# Needs cmake, ninja and a compiler with the sanitizer's library; without it, says so and passes.
set -e
cd "$(dirname "$0")/.."
build=build/ctest-threads

# The sanitizer's fixed memory layout conflicts with the address randomisation of some kernels
# ("unexpected memory mapping"), so randomisation is switched off if that is allowed.
fixed=""
if setarch -R true 2>/dev/null; then fixed="setarch -R"; fi

mkdir -p $build
echo 'int main() { return 0; }' >$build/probe.cpp
if ! "${CXX:-g++}" -fsanitize=thread -o $build/probe $build/probe.cpp 2>$build/probe.log ||
    ! $fixed ./$build/probe 2>$build/probe.log; then
    echo "the thread sanitizer does not work here, its test is left out: $(tail -n 1 $build/probe.log)"
    exit 0
fi
cmake -S . -B $build -G Ninja -DXCOUNT_WERROR=ON -DXCOUNT_SANITIZE=thread \
    -DCMAKE_BUILD_TYPE=Debug >/dev/null
cmake --build $build --parallel "${JOBS:-2}" --target threads_test
$fixed ctest --test-dir $build --output-on-failure --no-tests=error -R '^threads_test$'
