#!/bin/sh
# Build the core file by file and put it into src/xcount, for development: after a change, only the
# changed files are compiled. PYTHONPATH=src then runs the sources. Needs nanobind in the environment
# (PYTHON names its interpreter), and uses ccache if it is installed.
set -e
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
launcher=$(command -v ccache || true)
cmake -S . -B build/develop -G Ninja -DXCOUNT_DEVELOP=ON -DXCOUNT_WERROR=ON \
  -DPython_EXECUTABLE="$(command -v "$python")" -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" \
  ${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher} >/dev/null
cmake --build build/develop --parallel "${JOBS:-2}"
cp build/develop/_core*.so src/xcount/
