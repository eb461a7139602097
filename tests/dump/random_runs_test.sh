#!/usr/bin/env bash
# usage: random_runs_test.sh PYTHON DEFTC FOLDER
set -euo pipefail
python=$1 deftc=$2 folder=$3
here=$(dirname "$0")
"$python" -c 'import numpy' 2>/dev/null || { echo "NumPy is not there"; exit 77; }
"$python" "$here/random_runs.py" build "$deftc" "$folder" --seed 1 --specs 12
"$python" "$here/random_runs.py" run "$deftc" "$folder" --runs 48
"$python" "$here/random_runs.py" build "$deftc" "$folder/bytes" --seed 1 --specs 6 --multiply-bytes
"$python" "$here/random_runs.py" run "$deftc" "$folder/bytes" --runs 24
"$python" "$here/random_runs.py" build "$deftc" "$folder/lists" --seed 1 --specs 6 --tensors latent --lists
"$python" "$here/random_runs.py" run "$deftc" "$folder/lists" --runs 18
