#!/bin/sh
# Build the core file by file and put it into src/xcount, for work on the sources: after a change only
# what changed is compiled. Then PYTHONPATH=src runs what is being worked on. Needs nanobind in the
# environment (PYTHON names its interpreter), and takes ccache where it is there.
set -e
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
launcher=$(command -v ccache || true)
cmake -S . -B build/develop -G Ninja -DXCOUNT_DEVELOP=ON -DXCOUNT_WERROR=ON \
  -DPython_EXECUTABLE="$(command -v "$python")" -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" \
  ${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher} >/dev/null
cmake --build build/develop --parallel "${JOBS:-2}"
cp build/develop/_core*.so src/xcount/
